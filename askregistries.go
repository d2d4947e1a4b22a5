package jr2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/preflight"
)

// registryPatience bounds the question about one image: a registry that does not answer keeps nobody from applying.
const registryPatience = 10 * time.Second

// AskRegistries answers the question of preflight.SetFacts.Images: it asks each image's own registry, as registry says, for at most ten
// seconds. local is the registry beside the cluster (images.ParseLocalRegistry), which is asked by the name that we have for it; the zero
// value knows none. A name of this machine that is not the local registry's means each node itself to the nodes: what answers here is believed
// when it has the image, and else says nothing.
func AskRegistries(registry images.Registry, local images.LocalRegistry) func(ctx context.Context, ref string, as authn.Authenticator) (preflight.ImageFacts, error) {
	return func(ctx context.Context, ref string, as authn.Authenticator) (preflight.ImageFacts, error) {
		bounded, cancel := context.WithTimeout(ctx, registryPatience)
		defer cancel()
		look := registry.Look
		if as != nil {
			look = func(ctx context.Context, ref string) (images.Target, error) { return registry.LookAs(ctx, ref, as) }
		}
		found, err := look(bounded, local.LookName(ref))
		absent, refused := (*images.AbsentError)(nil), (*images.RegistryError)(nil)
		clear := errors.As(err, &absent) || errors.As(err, &refused) && refused.Denied()
		switch {
		case clear && images.MayBeLocal(ref) && !local.Names(ref):
			return preflight.ImageFacts{}, errors.New("it names this machine, which to a node means the node itself")
		case absent != nil:
			return preflight.ImageFacts{Missing: true}, nil
		case clear:
			return preflight.ImageFacts{Denied: briefly(err)}, nil
		}
		return preflight.ImageFacts{Digest: found.Digest, Platforms: found.Platforms}, briefly(err)
	}
}

// briefly is why a registry gave no answer, without the address that was asked: what is said about it names the image. Its mirrors are named.
func briefly(err error) error {
	refused := (*images.RegistryError)(nil)
	if !errors.As(err, &refused) || len(refused.Mirrors) == 0 {
		return shortly(err)
	}
	text := shortly(refused.Err).Error()
	for _, err := range refused.Mirrors {
		text += "; " + err.Error()
	}
	return errors.New(text)
}

func shortly(err error) error {
	if lookup := (*net.DNSError)(nil); errors.As(err, &lookup) {
		return errors.New(lookup.Err)
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) {
		return dial.Err
	}
	if status := (*transport.Error)(nil); errors.As(err, &status) && status.StatusCode > 0 {
		words := fmt.Sprintf("%d %s", status.StatusCode, http.StatusText(status.StatusCode))
		for _, more := range status.Errors {
			if more.Message != "" {
				words += ": " + more.Message
			}
		}
		return errors.New(words)
	}
	if refused := (*images.RegistryError)(nil); errors.As(err, &refused) {
		return refused.Err
	}
	return err
}
