package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Labels of an image that a converge built.
const (
	LabelKind     = "jr2.dev/kind"
	LabelInstance = "jr2.dev/instance"
	KindSandbox   = "sandbox"
)

// Registry is the Deliverer that pushes to a registry and reads back what arrived. The zero value works.
type Registry struct {
	// Keychain answers for credentials; nil means authn.DefaultKeychain.
	Keychain authn.Keychain
	// Transport carries our own requests; nil means remote.DefaultTransport.
	Transport http.RoundTripper
	// Insecure lists hosts ("host" or "host:port") that may be spoken to by plain http, by us and by the builder.
	Insecure []string
}

// Have asks the registry for img. An image counts when it has one manifest per platform, each made for its platform and labelled
// as a Sandbox Image of the instance, and one USER: anything else that stands under the tag is built over.
//
// A registry that answers 403 hides what it has, so nothing is known and the answer is no; any other failure is a *RegistryError.
func (r *Registry) Have(ctx context.Context, img Image, instance string, platformSet []string) (Delivered, bool, error) {
	ref, err := r.parse(img.Ref)
	if err != nil {
		return Delivered{}, false, err
	}
	found, err := r.inspect(ctx, ref)
	var status *transport.Error
	switch {
	case isAbsent(err), errors.As(err, &status) && status.StatusCode == http.StatusForbidden:
		return Delivered{}, false, nil
	case err != nil:
		return Delivered{}, false, err
	case !found.labelled(instance) || found.check(platformSet) != nil:
		return Delivered{}, false, nil
	}
	user, err := found.user()
	if err != nil {
		return Delivered{}, false, nil
	}
	return Delivered{Ref: img.Ref, Digest: found.digest, User: user}, true, nil
}

// Send builds and pushes through b, then reads the pushed digest back: each child of a manifest list must be made for the
// platform of its descriptor (*PlatformError), and all must declare one USER (*UserError).
func (r *Registry) Send(ctx context.Context, b Builder, req BuildRequest) (Delivered, error) {
	ref, err := r.parse(req.Ref)
	if err != nil {
		return Delivered{}, err
	}
	req.Keychain, req.Transport = r.keychain(), r.transport()
	req.Insecure = r.insecure(ref.Context().RegistryStr())
	result, err := b.Build(ctx, req)
	if err != nil {
		return Delivered{}, err
	}
	if result.Digest != "" { // the digest, since somebody else may move the tag
		ref = ref.Context().Digest(result.Digest)
	}
	found, err := r.inspect(ctx, ref)
	if err != nil {
		return Delivered{}, err
	}
	found.ref = req.Ref
	if err := found.check(req.Platforms); err != nil {
		return Delivered{}, err
	}
	user, err := found.user()
	if err != nil {
		return Delivered{}, err
	}
	return Delivered{Ref: req.Ref, Digest: found.digest, User: user}, nil
}

func (r *Registry) keychain() authn.Keychain {
	if r.Keychain == nil {
		return authn.DefaultKeychain
	}
	return r.Keychain
}

func (r *Registry) transport() http.RoundTripper {
	inner := r.Transport
	if inner == nil {
		inner = remote.DefaultTransport
	}
	return &guard{inner: inner, insecure: r.insecure}
}

// insecure says whether host was marked for plain http.
func (r *Registry) insecure(host string) bool {
	bare, _, err := net.SplitHostPort(host)
	if err != nil {
		bare = host
	}
	return slices.Contains(r.Insecure, host) || slices.Contains(r.Insecure, bare)
}

func (r *Registry) parse(ref string) (name.Reference, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, &RefError{ref, err.Error()}
	}
	if r.insecure(parsed.Context().RegistryStr()) {
		return name.ParseReference(ref, name.Insecure)
	}
	return parsed, nil
}

func (r *Registry) options(ctx context.Context) []remote.Option {
	return remoteOptions(ctx, r.keychain(), r.transport())
}

func remoteOptions(ctx context.Context, keychain authn.Keychain, transport http.RoundTripper) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(keychain),
		remote.WithTransport(transport),
		remote.WithUserAgent("jr2"),
		// The library's own list, and 429: a registry under load asks for patience.
		remote.WithRetryStatusCodes(http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout),
	}
}

// guard keeps requests, and the credentials in them, from going out by plain http. The library would try it for every private
// address.
type guard struct {
	inner    http.RoundTripper
	insecure func(host string) bool
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !isLoopback(req.URL.Hostname()) && !g.insecure(req.URL.Host) {
		return nil, fmt.Errorf("plain http to %s is not allowed: it is neither a loopback host nor listed as insecure", req.URL.Host)
	}
	return g.inner.RoundTrip(req)
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// isAbsent says whether err is a registry's clear word that it has no such manifest. A 404 to any other request is none: it
// comes from a host that is no registry.
func isAbsent(err error) bool {
	var status *transport.Error
	return errors.As(err, &status) && status.StatusCode == http.StatusNotFound && status.Request != nil &&
		strings.Contains(status.Request.URL.Path, "/manifests/")
}

func registryError(ref name.Reference, err error) error {
	var status *transport.Error
	return &RegistryError{
		Ref: ref.String(), Host: ref.Context().RegistryStr(), Err: err,
		Unauthorized: errors.As(err, &status) && status.StatusCode == http.StatusUnauthorized,
	}
}
