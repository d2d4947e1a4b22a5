package images

import (
	"context"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
)

// A Builder builds an image from a folder and pushes it.
type Builder interface {
	// Platforms lists what the builder can build for, such as "linux/amd64"; empty means no opinion.
	Platforms(ctx context.Context) ([]string, error)
	// Build builds req.Dir with its default Dockerfile and pushes the result as req.Ref: one manifest for one platform, one
	// manifest list for several, without attestations. A failed build is a *BuildError, a failed push a *PushError.
	Build(ctx context.Context, req BuildRequest) (BuildResult, error)
}

// A BuildRequest is one build.
type BuildRequest struct {
	Name      string // for messages
	Dir       string
	Ref       string
	Platforms []string
	Labels    map[string]string
	BuildArgs map[string]string
	// ByDigest pushes without a tag: only the repository of Ref counts. The result says under which digest.
	ByDigest bool
	// NoCache builds every step again.
	NoCache bool
	// Keychain answers for the credentials of registries; nil means docker's own configuration.
	Keychain authn.Keychain
	// Transport fetches registry tokens; nil means go-containerregistry's default.
	Transport http.RoundTripper
	// Insecure lets the builder push by plain http.
	Insecure bool
	// BeforePush is called when every step has succeeded and nothing has been pushed; an error ends the build there. nil means none.
	BeforePush func(context.Context, []Built) error
	// Progress takes Step, Log and Warning events, one at a time; nil means none.
	Progress func(Event)
}

// Built is what a builder knows of the image for one platform before it is pushed.
type Built struct {
	Platform string
	User     string // the USER of the image's config; "" for none
	// BasePlatform is the platform of the image that the last stage stands on; empty when it stands on none or the builder can't tell.
	BasePlatform string
}

// A BuildResult is a pushed image.
type BuildResult struct {
	Digest string // of what the ref names: a manifest, or a manifest list for several platforms
	// Users maps each platform to its USER.
	Users map[string]string
}

// A Deliverer brings an image to where the nodes of a cluster find it. One that also has MayPush(context.Context, Image) error, as
// Registry and Kind have, is asked before an image is built for it.
type Deliverer interface {
	// Have says whether the image is there already, made for the same Instance and for every platform.
	Have(ctx context.Context, img Image, instance string, platformSet []string) (Delivered, bool, error)
	// Send builds with b, brings the result there and reads it back.
	Send(ctx context.Context, b Builder, req BuildRequest) (Delivered, error)
}

// Delivered is an image that nodes can pull.
type Delivered struct {
	// Ref is the one by which nodes pull it.
	Ref string
	// Digest of what Ref names in the registry, or on the nodes; empty for an image that the record let skip.
	Digest string
	// User is the USER that every platform of the image declares; "" for none.
	User string
}
