package images

import (
	"context"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Options of Deliver. The zero value works.
type Options struct {
	// Keychain answers for the credentials of registries; nil means docker's own configuration (authn.DefaultKeychain).
	Keychain authn.Keychain
	// Transport carries our own requests to registries, for a private CA or a proxy; nil means go-containerregistry's default.
	Transport http.RoundTripper
	// Insecure lists registry hosts ("host" or "host:port") that may be spoken to by plain http. Loopback hosts always may.
	Insecure []string
	// BuildArgs are passed to every build; none by default.
	BuildArgs map[string]string
	// Events takes each Event, one at a time, in order; nil means none.
	Events func(Event)
	// Deliverer replaces the registry; nil means Registry with the fields above.
	Deliverer Deliverer
}

// Deliver brings every image of d to where the nodes find it and returns what it delivered per key. An error comes with what was
// delivered before it.
//
// builder is called at most once, and only when something has to be built: an image that the record or the registry proves is
// not. Before the first build the builder's platforms are checked, so that nothing is built when one of them cannot be. An image
// counts as delivered when its registry gave it back: every platform, one USER.
func Deliver(ctx context.Context, d *Decision, builder func(context.Context) (Builder, error), opts Options) (map[string]Delivered, error) {
	return nil, nil
}
