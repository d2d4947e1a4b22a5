package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

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
	// Mirrors are asked by Look before the registry that an image names; by nothing else. See Mirrors.Check.
	Mirrors Mirrors
	// Silence is how long a registry may neither take nor send a byte; 0 means a minute.
	Silence time.Duration
}

// Have asks the registry for img: one HEAD, and when something stands under the tag, its manifests and configurations by digest. An image
// counts when it has one manifest per platform, each made for its platform and labelled as a Sandbox Image of the instance, and one USER:
// anything else is built over.
//
// A registry that answers 403 hides what it has, so nothing is known and the answer is no; any other failure is a *RegistryError.
func (r *Registry) Have(ctx context.Context, img Image, instance string, platformSet []string) (Delivered, bool, error) {
	ref, err := r.parse(img.Ref)
	if err != nil {
		return Delivered{}, false, err
	}
	at := ref
	desc, err := remote.Head(ref, r.options(ctx)...)
	switch {
	case err == nil:
		at = ref.Context().Digest(desc.Digest.String())
	case isAbsent(err), hasStatus(err, http.StatusForbidden):
		return Delivered{}, false, nil
	case !hasStatus(err, http.StatusMethodNotAllowed): // one that knows no HEAD is asked by GET
		return Delivered{}, false, registryError(ref, err)
	}
	found, err := r.inspect(ctx, at)
	switch {
	case isAbsent(err), hasStatus(err, http.StatusForbidden):
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

// MayPush asks whether the credentials may push img, before anything is built for it: it opens an upload and gives it up. A
// *RegistryError with Push says that they may not, or that the registry can't be asked.
func (r *Registry) MayPush(ctx context.Context, img Image) error {
	ref, err := r.parse(img.Ref)
	if err != nil {
		return err
	}
	again := transport.NewRetry(r.transport(), transport.WithRetryStatusCodes(busyStatuses()...),
		transport.WithRetryBackoff(remote.Backoff{Duration: time.Second, Factor: 3, Jitter: 0.1, Steps: 3})) // as the library's other requests
	within := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		if req.Method != http.MethodDelete { // giving up the upload happens after the call
			req = req.WithContext(ctx)
		}
		return again.RoundTrip(req)
	})
	if err := remote.CheckPushPermission(ref, r.keychain(), within); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed := registryError(ref, err)
		failed.Push = true
		return failed
	}
	return nil
}

type roundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func hasStatus(err error, code int) bool {
	var status *transport.Error
	return errors.As(err, &status) && status.StatusCode == code
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
	result, err := r.build(ctx, b, req, ref)
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

// busyRetries is how often a push is made again that the registry refused for being busy. The builder has all of the image then.
const busyRetries = 3

// build builds, and again when only the push failed because the registry is busy: builders try other failures again by themselves. The
// question in between waits as long as the registry asks for.
func (r *Registry) build(ctx context.Context, b Builder, req BuildRequest, ref name.Reference) (BuildResult, error) {
	for retry := 0; ; retry++ {
		result, err := b.Build(ctx, req)
		var push *PushError
		if err == nil || retry == busyRetries || !errors.As(err, &push) || !push.Busy() {
			return result, err
		}
		if err := sleep(ctx, time.Second<<retry); err != nil {
			return result, err
		}
		remote.Head(ref, r.options(ctx)...) //nolint:errcheck // asked for the wait alone
	}
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
	return &guard{inner: &patient{inner: inner, silence: r.Silence}, insecure: r.insecure}
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
		remote.WithRetryStatusCodes(busyStatuses()...),
	}
}

// busyStatuses are the answers after which a request is made again: the library's own list, and 429: a registry under load asks for patience.
func busyStatuses() []int {
	return []int{http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
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

func registryError(ref name.Reference, err error) *RegistryError {
	return &RegistryError{Ref: ref.String(), Host: ref.Context().RegistryStr(), Err: err, Unauthorized: hasStatus(err, http.StatusUnauthorized)}
}
