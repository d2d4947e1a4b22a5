package images

import (
	"context"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
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

// BuiltImages reads the metadata of a solve.
func BuiltImages(metadata map[string][]byte, platformSet []string) ([]Built, error) {
	return builtImages(&gateway.Result{Metadata: metadata}, platformSet)
}

// CheckBases looks at images that an engine of this architecture built of dir, one for each platform.
func CheckBases(architecture, dir string, platformSet []string, images []v1.Image) error {
	return (&engine{architecture: architecture}).checkBases(BuildRequest{Dir: dir, Ref: "r.test/x:1", Platforms: platformSet}, images)
}
