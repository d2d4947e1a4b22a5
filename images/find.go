package images

import (
	"context"
	"errors"
	"slices"

	cplatforms "github.com/containerd/platforms"
	"github.com/moby/buildkit/util/archutil"
)

// A Found is the builder that Connect would come to, as far as that can be seen without starting one.
type Found struct {
	Place Place
	// Starts says that Connect would start it, because nothing else answers. Its Place has no Address yet.
	Starts bool
	// Platforms are what it can build for, such as "linux/amd64"; empty when it does not say.
	Platforms []string
}

// Find looks for a builder at the places of Connect, in its order, and asks the first that answers what it can build for. It builds nothing and
// starts nothing: where Connect would start a buildkitd of its own, Find says so, and what that could build for on this machine. Errors are those
// of Connect, and of a builder that answers and then does not say what it builds for, whose Found comes with the error.
func Find(ctx context.Context, opts ConnectOptions) (Found, error) {
	opts.find = true
	b, err := Connect(ctx, opts)
	none := (*NoBuilderError)(nil)
	if errors.As(err, &none) {
		last := len(none.Tried) - 1
		if last >= 0 && errors.Is(none.Tried[last].Err, errStartable) {
			return Found{Place: none.Tried[last].Place, Starts: true, Platforms: ownPlatforms()}, nil
		}
	}
	if err != nil {
		return Found{}, err
	}
	found := Found{Place: b.Place()}
	offered, err := b.Platforms(ctx)
	found.Platforms = offered
	return found, errors.Join(err, b.Close())
}

// errStartable says that a buildkitd of our own could be started.
var errStartable = errors.New("it can be started")

// ownPlatforms are what a buildkitd that is our child would offer: it finds out so itself.
func ownPlatforms() []string {
	var out []string
	for _, p := range archutil.SupportedPlatforms(true) {
		out = append(out, cplatforms.Format(p))
	}
	return slices.Compact(out)
}
