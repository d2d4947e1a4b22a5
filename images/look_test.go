package images_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jr2.dev/jr2/images"
)

// pushIndex pushes a manifest list with these entries, and returns its digest.
func pushIndex(t *testing.T, ref string, entries ...mutate.IndexAddendum) string {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), entries...)
	digest, err := index.Digest()
	if err := errors.Join(err, remote.WriteIndex(parsed, index)); err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func pushImage(t *testing.T, ref string, image v1.Image) string {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err := errors.Join(err, remote.Write(parsed, image)); err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func entry(c child, platform *v1.Platform) mutate.IndexAddendum {
	d := v1.Descriptor{Platform: platform}
	if c.attestation {
		d.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	}
	return mutate.IndexAddendum{Add: c.image(), Descriptor: d}
}

// TestA06Look: a tag is resolved to what it points to now, with the platforms that it is published for.
func TestA06Look(t *testing.T) {
	at := host(t, nil)
	v8 := child{os: "linux", arch: "arm64", variant: "v8"}
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.example.model")
	for _, c := range []struct {
		name   string
		digest string
		want   []string
	}{
		{"index", pushIndex(t, at+"/team/index:v1", entry(amd64(""), &v1.Platform{OS: "linux", Architecture: "amd64"}), entry(v8, &v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}),
			entry(attestation(), &v1.Platform{OS: "unknown", Architecture: "unknown"})), []string{"linux/amd64", "linux/arm64"}},
		{"amd64-and-attestation", pushIndex(t, at+"/team/amd64-and-attestation:v1", entry(amd64(""), &v1.Platform{OS: "linux", Architecture: "amd64"}),
			entry(attestation(), &v1.Platform{OS: "unknown", Architecture: "unknown"})), []string{"linux/amd64"}},
		{"unstated", pushIndex(t, at+"/team/unstated:v1", entry(arm64(""), nil)), []string{"linux/arm64"}},
		{"single", pushImage(t, at+"/team/single:v1", v8.image()), []string{"linux/arm64"}},
		{"artifact", pushImage(t, at+"/team/artifact:v1", artifact), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &images.Registry{Keychain: keychain(nil)}
			for _, ref := range []string{at + "/team/" + c.name + ":v1", at + "/team/" + c.name + "@" + c.digest, at + "/team/" + c.name + ":old@" + c.digest} {
				target, err := r.Look(t.Context(), ref)
				if err != nil || target.Digest != c.digest || !slices.Equal(target.Platforms, c.want) {
					t.Errorf("%s: got %+v, %v; want %s %v", ref, target, err, c.digest, c.want)
				}
			}
		})
	}
	t.Run("the tag moves", func(t *testing.T) {
		r := &images.Registry{Keychain: keychain(nil)}
		moved := pushImage(t, at+"/team/single:v1", amd64("").image())
		if target, err := r.Look(t.Context(), at+"/team/single:v1"); err != nil || target.Digest != moved {
			t.Errorf("got %+v, %v", target, err)
		}
	})
}

// TestLookTellsAbsentFromUnknown: only the registry's own word means that there is no image.
func TestLookTellsAbsentFromUnknown(t *testing.T) {
	var status atomic.Int64
	at := host(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code := int(status.Load()); code != 0 && r.URL.Path != "/v2/" {
				w.WriteHeader(code)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	r := &images.Registry{Keychain: keychain(nil)}
	var absent *images.AbsentError
	var unread *images.RegistryError
	if _, err := r.Look(t.Context(), at+"/team/app:v1"); !errors.As(err, &absent) || absent.Ref != at+"/team/app:v1" || !errors.As(err, &unread) {
		t.Errorf("got %v", err)
	}
	for _, code := range []int64{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest} {
		status.Store(code)
		if _, err := r.Look(t.Context(), at+"/team/app:v1"); errors.As(err, &absent) || !errors.As(err, &unread) || unread.Unauthorized != (code == http.StatusUnauthorized) {
			t.Errorf("%d: got %v", code, err)
		}
	}
	status.Store(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Look(ctx, at+"/team/app:v1"); !errors.Is(err, context.Canceled) || errors.As(err, &absent) {
		t.Errorf("got %v", err)
	}
	var bad *images.RefError
	for _, ref := range []string{"reg.example.com/App:v1", "", "app@sha256:REPLACE_ME"} {
		if _, err := r.Look(t.Context(), ref); !errors.As(err, &bad) || bad.Ref != ref {
			t.Errorf("%q: got %v", ref, err)
		}
	}
}

// TestLookNeverSpeaksPlainHTTPUnasked: the rule of the Registry holds for looks too.
func TestLookNeverSpeaksPlainHTTPUnasked(t *testing.T) {
	var plain atomic.Int64
	at := host(t, nil)
	digest := pushImage(t, at+"/team/app:v1", amd64("").image())
	r := &images.Registry{Keychain: keychain(nil), Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Scheme == "https" {
			return nil, errors.New("no TLS here")
		}
		plain.Add(1)
		req = req.Clone(req.Context())
		req.URL.Host = at
		return http.DefaultTransport.RoundTrip(req)
	})}
	if _, err := r.Look(t.Context(), "10.1.2.3:5000/team/app:v1"); err == nil || plain.Load() > 0 {
		t.Errorf("%d plain requests, %v", plain.Load(), err)
	}
	r.Insecure = []string{"10.1.2.3:5000"}
	if target, err := r.Look(t.Context(), "10.1.2.3:5000/team/app:v1"); err != nil || target.Digest != digest {
		t.Errorf("got %+v, %v", target, err)
	}
}

// TestLookAs: the credentials of somebody else are shown to the image's registry and to nobody else, and a registry that is busy is asked again, for
// a token too.
func TestLookAs(t *testing.T) {
	const user, password = "puller", "s3cret"
	var busy atomic.Int64
	private := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, word, _ := r.BasicAuth()
			switch {
			case busy.Add(-1) >= 0:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			case r.URL.Path == "/token" && (name != user || word != password):
				w.WriteHeader(http.StatusUnauthorized)
			case r.URL.Path == "/token":
				fmt.Fprint(w, `{"token": "let-in"}`)
			case r.Header.Get("Authorization") != "Bearer let-in":
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, r.Host))
				w.WriteHeader(http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
	at := host(t, private)
	right := &authn.Basic{Username: user, Password: password}
	parsed, err := name.ParseReference(at + "/team/app:v1")
	if err := errors.Join(err, remote.Write(parsed, amd64("").image(), remote.WithAuth(right))); err != nil {
		t.Fatal(err)
	}
	r := &images.Registry{Keychain: keychain(nil)}
	for range 2 {
		if target, err := r.LookAs(t.Context(), parsed.String(), right); err != nil || !slices.Equal(target.Platforms, []string{"linux/amd64"}) {
			t.Errorf("got %+v, %v", target, err)
		}
		busy.Store(3) // the second time
	}
	busy.Store(0)
	var refused *images.RegistryError
	for _, as := range []authn.Authenticator{authn.Anonymous, &authn.Basic{Username: user, Password: "guess"}} {
		if _, err := r.LookAs(t.Context(), parsed.String(), as); !errors.As(err, &refused) || !refused.Denied() {
			t.Errorf("got %v", err)
		}
	}
	if _, err := r.LookAs(t.Context(), at+"/team/none:v1", right); !errors.As(err, new(*images.AbsentError)) {
		t.Errorf("got %v", err)
	}
	if _, err := r.LookAs(t.Context(), "127.0.0.1:1/app:v1", right); !errors.As(err, &refused) || refused.Denied() {
		t.Errorf("got %v", err)
	}
	var shown atomic.Bool
	mirror := host(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				shown.Store(true)
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
	})
	r.Mirrors = images.Mirrors{at: {mirror + "/hub"}}
	if target, err := r.LookAs(t.Context(), parsed.String(), right); err != nil || target.Mirror != "" || shown.Load() {
		t.Errorf("got %+v, %v; the mirror saw credentials: %v", target, err, shown.Load())
	}
}

// TestLookName: what nodes pull by their name for a registry is asked about by ours.
func TestLookName(t *testing.T) {
	local := images.LocalRegistry{Host: "localhost:5001", FromRuntime: "kind-registry:5000"}
	for ref, want := range map[string]struct {
		look  string
		names bool
	}{
		"kind-registry:5000/team/app:v1": {"localhost:5001/team/app:v1", true},
		"localhost:5001/team/app:v1":     {"localhost:5001/team/app:v1", true},
		"127.0.0.1:5001/app@sha256:0":    {"127.0.0.1:5001/app@sha256:0", true},
		"localhost:5000/app":             {"localhost:5000/app", false},
		"kind-registry/app":              {"kind-registry/app", false},
		"app:v1":                         {"app:v1", false},
	} {
		if got := local.LookName(ref); got != want.look || local.Names(ref) != want.names {
			t.Errorf("%s: got %s, %v", ref, got, local.Names(ref))
		}
	}
	if none := (images.LocalRegistry{}); none.LookName("localhost:5001/app") != "localhost:5001/app" || none.Names("localhost:5001/app") {
		t.Error("a registry that nobody told of has names")
	}
}

func ExampleRegistry_LookAs() {
	registry := &images.Registry{}
	_, err := registry.LookAs(context.Background(), "127.0.0.1:1/team/app:v1", authn.Anonymous) // as a kubelet without a pull Secret
	var refused *images.RegistryError
	fmt.Println(errors.As(err, &refused), refused.Denied())
	// Output: true false
}

func ExampleRegistry_Look() {
	registry := &images.Registry{}
	_, err := registry.Look(context.Background(), "registry.example.com/Team/app:v1")
	var bad *images.RefError
	fmt.Println(errors.As(err, &bad), strings.HasPrefix(err.Error(), `image name "registry.example.com/Team/app:v1"`))
	// Output: true true
}
