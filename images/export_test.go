package images

import (
	"context"
	"time"
)

// Sent lists the paths that a builder may be sent of dir.
func Sent(ctx context.Context, dir string) ([]string, error) {
	sent, err := sentFrom(ctx, dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range sent.entries {
		if !e.apart {
			paths = append(paths, e.path)
		}
	}
	return paths, nil
}

// Drain sets what a cancelled build gets to end.
func (b *BuildKit) Drain(d time.Duration) { b.drain = d }
