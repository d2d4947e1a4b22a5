package images_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/platforms"
)

// child is one entry of a pushed image: what its descriptor claims and what its config says.
type child struct {
	claims      v1.Platform
	os, arch    string
	variant     string
	user        string
	attestation bool
	unlabelled  bool
	instance    string // "fx" when empty
}

// pusher is a Builder that pushes given children: some of them no real builder makes.
type pusher struct {
	children []child
	offers   []string
	offerErr error
	builds   int
	requests []images.BuildRequest
	built    []images.Built // given to BeforePush
	err      error
	tamper   func() // runs while "building"
}

func (p *pusher) Platforms(context.Context) ([]string, error) { return p.offers, p.offerErr }

func (p *pusher) Build(ctx context.Context, req images.BuildRequest) (images.BuildResult, error) {
	p.builds++
	p.requests = append(p.requests, req)
	if p.tamper != nil {
		p.tamper()
	}
	if p.err != nil {
		return images.BuildResult{}, p.err
	}
	if err := req.BeforePush(ctx, p.built); err != nil {
		return images.BuildResult{}, err
	}
	ref, err := name.ParseReference(req.Ref)
	if err != nil {
		return images.BuildResult{}, err
	}
	opts := []remote.Option{remote.WithContext(ctx), remote.WithTransport(req.Transport), remote.WithAuthFromKeychain(req.Keychain)}
	if len(p.children) == 1 && p.children[0].claims.OS == "" {
		image := p.children[0].image()
		digest, err := image.Digest()
		return images.BuildResult{Digest: digest.String()}, errors.Join(err, remote.Write(ref, image, opts...))
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, c := range p.children {
		platform := c.claims
		d := v1.Descriptor{Platform: &platform}
		if c.attestation {
			d.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: c.image(), Descriptor: d})
	}
	digest, err := index.Digest()
	return images.BuildResult{Digest: digest.String()}, errors.Join(err, remote.WriteIndex(ref, index, opts...))
}

func (c child) image() v1.Image {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config := &v1.ConfigFile{OS: c.os, Architecture: c.arch, Variant: c.variant, Config: v1.Config{User: c.user}, RootFS: v1.RootFS{Type: "layers"}}
	if !c.unlabelled {
		instance := c.instance
		if instance == "" {
			instance = "fx"
		}
		config.Config.Labels = map[string]string{images.LabelKind: images.KindSandbox, images.LabelInstance: instance}
	}
	image, err := mutate.ConfigFile(base, config)
	if err != nil {
		panic(err)
	}
	return image
}

func amd64(user string) child {
	return child{claims: v1.Platform{OS: "linux", Architecture: "amd64"}, os: "linux", arch: "amd64", user: user}
}

func arm64(user string) child {
	return child{claims: v1.Platform{OS: "linux", Architecture: "arm64"}, os: "linux", arch: "arm64", user: user}
}

func attestation() child {
	return child{claims: v1.Platform{OS: "unknown", Architecture: "unknown"}, os: "unknown", arch: "unknown", attestation: true, user: "not-a-user"}
}

// host starts a registry behind wrap and returns its host:port.
func host(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	var handler http.Handler = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func decide(t *testing.T, at string, set ...string) *images.Decision {
	t.Helper()
	d, err := images.Plan(t.Context(), images.Request{
		Instance: "fx", Registry: at + "/team", Context: "prod", Platforms: set,
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: folder(t, "default", holdFiles())}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deliver(t *testing.T, d *images.Decision, b images.Builder, opts images.Options) (map[string]images.Delivered, []string, error) {
	t.Helper()
	var events []string
	opts.Events = func(e images.Event) { events = append(events, strings.TrimPrefix(fmt.Sprintf("%T", e), "images.")) }
	opts.Keychain = keychain(opts.Keychain)
	got, err := images.Deliver(t.Context(), d, func(context.Context) (images.Builder, error) {
		if b == nil {
			t.Fatal("a builder was asked for, and nothing has to be built")
		}
		return b, nil
	}, opts)
	return got, events, err
}

// keychain keeps the tests from the docker configuration of the machine.
func keychain(k authn.Keychain) authn.Keychain {
	if k == nil {
		return authn.NewMultiKeychain()
	}
	return k
}

func TestDeliverReadsBack(t *testing.T) {
	both := []string{"linux/amd64", "linux/arm64"}
	armV8 := arm64("7")
	armV8.claims.Variant, armV8.variant = "v8", "v8"
	pinned := arm64("")
	pinned.arch = "amd64"
	swapped, windows := amd64(""), amd64("")
	swapped.arch, windows.os = "arm64", "windows"
	single := child{os: "linux", arch: "amd64", user: "1200:1200"}
	otherArch := child{os: "linux", arch: "s390x"}
	cases := []struct {
		name     string
		set      []string
		children []child
		user     string
		err      error
		text     string
	}{
		{"one manifest", []string{"linux/amd64"}, []child{single}, "1200:1200", nil, ""},
		{"one platform and its attestation", []string{"linux/amd64"}, []child{amd64("7"), attestation()}, "7", nil, ""},
		{"two platforms", both, []child{amd64(""), arm64("")}, "", nil, ""},
		{"two platforms, variant spelled out", both, []child{amd64("7"), attestation(), armV8, attestation()}, "7", nil, ""},
		{"one missing", both, []child{amd64("7"), attestation()}, "", &images.PlatformError{}, "holds no image for linux/arm64"},
		{"only an attestation beside nothing", []string{"linux/amd64"}, []child{attestation()}, "", &images.PlatformError{}, "holds no image for linux/amd64"},
		{"single image for another platform", []string{"linux/amd64"}, []child{otherArch}, "", &images.PlatformError{}, "holds no image for linux/amd64"},
		{"config against its descriptor", both, []child{amd64(""), pinned}, "", &images.PlatformError{}, "the image for linux/arm64 says that it is for linux/amd64"},
		{"config against its descriptor, one platform", []string{"linux/arm64"}, []child{pinned, attestation()}, "", &images.PlatformError{}, "the image for linux/arm64 says that it is for linux/amd64"},
		{"the other way round", both, []child{swapped, arm64("")}, "", &images.PlatformError{}, "the image for linux/amd64 says that it is for linux/arm64"},
		{"another system", []string{"linux/amd64"}, []child{windows}, "", &images.PlatformError{}, "the image for linux/amd64 says that it is for windows/amd64"},
		{"USERs differ", both, []child{amd64("1200"), arm64("")}, "", &images.UserError{}, `linux/amd64 declares "1200", linux/arm64 declares none`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := decide(t, host(t, nil), c.set...)
			b := &pusher{children: c.children}
			got, events, err := deliver(t, d, b, images.Options{})
			if c.err != nil {
				if reflect.TypeOf(err) != reflect.TypeOf(c.err) || !strings.Contains(err.Error(), c.text) || len(got) != 0 {
					t.Errorf("%v, %T %v", got, err, err)
				}
				return
			}
			must(t, err)
			user := "NoUser"
			if c.user != "" {
				user = "User"
			}
			if want := []string{"Building", user, "Pushed"}; !reflect.DeepEqual(events, want) {
				t.Errorf("events %v, want %v", events, want)
			}
			if one := got["default"]; one.User != c.user || one.Ref != d.Images[0].Ref || !strings.HasPrefix(one.Digest, "sha256:") {
				t.Errorf("%+v", one)
			}
			want := map[string]string{"jr2.dev/kind": "sandbox", "jr2.dev/instance": "fx"}
			if !reflect.DeepEqual(b.requests[0].Labels, want) {
				t.Errorf("labels %v", b.requests[0].Labels)
			}
		})
	}
}

func TestDeliverFindsWhatTheRegistryHolds(t *testing.T) {
	unlabelled, foreign := amd64(""), amd64("")
	unlabelled.unlabelled, foreign.instance = true, "other"
	cases := []struct {
		name   string
		holds  []child
		force  bool
		builds int
	}{
		{"nothing", nil, false, 1},
		{"ours", []child{amd64("7")}, false, 0},
		{"ours, forced", []child{amd64("7")}, true, 1},
		{"made by hand", []child{unlabelled}, false, 1},
		{"of another Instance", []child{foreign}, false, 1},
		{"for another platform", []child{arm64("7")}, false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := decide(t, host(t, nil), "linux/amd64")
			if c.holds != nil {
				first := &pusher{children: c.holds}
				if _, err := first.Build(t.Context(), images.BuildRequest{
					Ref: d.Images[0].Ref, Transport: http.DefaultTransport, Keychain: keychain(nil),
					BeforePush: func(context.Context, []images.Built) error { return nil },
				}); err != nil {
					t.Fatal(err)
				}
			}
			d.Force = c.force
			b := &pusher{children: []child{amd64("7")}}
			got, events, err := deliver(t, d, b, images.Options{})
			must(t, err)
			if b.builds != c.builds || got["default"].User != "7" {
				t.Errorf("%d builds, %+v", b.builds, got)
			}
			if c.builds == 0 && !reflect.DeepEqual(events, []string{"Fresh"}) {
				t.Errorf("events %v", events)
			}
		})
	}
}

func TestDeliverSkipsByRecordWithoutAnyRequest(t *testing.T) {
	var requests atomic.Int64
	at := host(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests.Add(1); next.ServeHTTP(w, r) })
	})
	d := decide(t, at, "linux/amd64")
	d.Images[0].Skip, d.Images[0].User = true, "7"
	got, events, err := deliver(t, d, nil, images.Options{})
	must(t, err)
	if got["default"] != (images.Delivered{Ref: d.Images[0].Ref, User: "7"}) || requests.Load() != 0 || !reflect.DeepEqual(events, []string{"Fresh"}) {
		t.Errorf("%+v, %d requests, %v", got, requests.Load(), events)
	}
}

func TestDeliverBuildsOneRefOnce(t *testing.T) {
	d := decide(t, host(t, nil), "linux/amd64")
	twin := d.Images[0]
	twin.Key = twin.Digest
	d.Images = append(d.Images, twin)
	b := &pusher{children: []child{amd64("7")}}
	got, _, err := deliver(t, d, b, images.Options{})
	must(t, err)
	if b.builds != 1 || len(got) != 2 || got["default"] != got[twin.Digest] {
		t.Errorf("%d builds, %+v", b.builds, got)
	}
}

func TestDeliverChecksTheBuilderOnceBeforeAnyBuild(t *testing.T) {
	both := []string{"linux/amd64", "linux/arm64"}
	cases := []struct {
		name   string
		offers []string
		err    error
		builds int
	}{
		{"offers both", []string{"linux/amd64", "linux/amd64/v2", "linux/arm64"}, nil, 1},
		{"offers one", []string{"linux/amd64", "linux/386"}, nil, 0},
		{"offers nothing", nil, nil, 1},
		{"cannot say", nil, errors.New("no workers"), 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := &pusher{children: []child{amd64(""), arm64("")}, offers: c.offers, offerErr: c.err}
			_, events, err := deliver(t, decide(t, host(t, nil), both...), b, images.Options{})
			var emulation *platforms.EmulationError
			if errors.As(err, &emulation) != (c.builds == 0) || b.builds != c.builds || (c.builds == 0) != (len(events) == 0) {
				t.Errorf("%d builds, %v, %v", b.builds, events, err)
			}
			if c.builds == 1 {
				must(t, err)
			}
		})
	}
}

func TestDeliverRefusesBeforeThePush(t *testing.T) {
	both := []string{"linux/amd64", "linux/arm64"}
	cases := []struct {
		name  string
		built []images.Built
		err   error
		text  string
	}{
		{"last stage pinned", []images.Built{{Platform: "linux/amd64", BasePlatform: "linux/amd64"}, {Platform: "linux/arm64", BasePlatform: "linux/amd64"}}, &images.PlatformError{}, "the last stage for linux/arm64 stands on an image for linux/amd64"},
		{"a base for the other platform", []images.Built{{Platform: "linux/amd64", BasePlatform: "linux/arm64"}, {Platform: "linux/arm64", BasePlatform: "linux/arm64"}}, &images.PlatformError{}, "the last stage for linux/amd64 stands on an image for linux/arm64"},
		{"a base for neither", []images.Built{{Platform: "linux/amd64", BasePlatform: "linux/386"}, {Platform: "linux/arm64", BasePlatform: "linux/arm/v7"}}, &images.PlatformError{}, "the last stage for linux/arm64 stands on an image for linux/arm/v7"},
		{"each on the other's", []images.Built{{Platform: "linux/amd64", BasePlatform: "linux/arm64"}, {Platform: "linux/arm64", BasePlatform: "linux/amd64"}}, &images.PlatformError{}, "the last stage for linux/arm64 stands on an image for linux/amd64"},
		{"USERs differ", []images.Built{{Platform: "linux/amd64", User: "a"}, {Platform: "linux/arm64", User: "b"}}, &images.UserError{}, `linux/amd64 declares "a", linux/arm64 declares "b"`},
		{"a variant of the same architecture", []images.Built{{Platform: "linux/amd64", BasePlatform: "linux/amd64/v2"}, {Platform: "linux/arm64", BasePlatform: "linux/arm64"}}, nil, ""},
		{"from scratch", []images.Built{{Platform: "linux/amd64"}, {Platform: "linux/arm64"}}, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := &pusher{children: []child{amd64(""), arm64("")}, built: c.built}
			got, _, err := deliver(t, decide(t, host(t, nil), both...), b, images.Options{})
			if c.err == nil {
				must(t, err)
				return
			}
			if reflect.TypeOf(err) != reflect.TypeOf(c.err) || !strings.Contains(err.Error(), c.text) || len(got) != 0 {
				t.Errorf("%T %v", err, err)
			}
		})
	}
	t.Run("folder changes meanwhile", func(t *testing.T) {
		d := decide(t, host(t, nil), "linux/amd64")
		b := &pusher{children: []child{amd64("")}, tamper: func() { write(t, d.Images[0].Dir+"/new", "x") }}
		_, _, err := deliver(t, d, b, images.Options{})
		var changed *images.ChangedError
		if !errors.As(err, &changed) {
			t.Errorf("%v", err)
		}
	})
}

func TestDeliverKeepsWhatCameBeforeAnError(t *testing.T) {
	d := decide(t, host(t, nil), "linux/amd64")
	second, third := d.Images[0], d.Images[0]
	second.Key, second.Ref = "two", strings.Replace(d.Images[0].Ref, "default", "two", 1)
	third.Key, third.Ref, third.Skip = "three", second.Ref+"x", true
	d.Images = append([]images.Image{third}, d.Images[0], second)
	b := &pusher{children: []child{amd64("")}}
	failed := errors.New("disk full")
	b.tamper = func() {
		if b.builds == 2 {
			b.err = failed
		}
	}
	got, _, err := deliver(t, d, b, images.Options{})
	if !errors.Is(err, failed) || len(got) != 2 || got["default"].Ref == "" || got["three"].Ref == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRegistryAnswers(t *testing.T) {
	status := func(code int, times int64, path string) func(http.Handler) http.Handler {
		var n atomic.Int64
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, path) && (r.Method == http.MethodGet || r.Method == http.MethodHead) && n.Add(1) <= times {
					w.WriteHeader(code)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	const always = 1 << 30
	cases := []struct {
		name         string
		wrap         func(http.Handler) http.Handler
		builds       int
		err          bool
		unauthorized bool
	}{
		{"busy, then well", status(http.StatusServiceUnavailable, 2, "/manifests/"), 1, false, false},
		{"asks for patience", status(http.StatusTooManyRequests, 1, "/manifests/"), 1, false, false},
		{"hides what it has", status(http.StatusForbidden, 1, "/manifests/"), 1, false, false},
		{"401", status(http.StatusUnauthorized, always, "/manifests/"), 0, true, true},
		{"no registry at all", status(http.StatusNotFound, always, "/v2/"), 0, true, false},
		{"broken", status(http.StatusInternalServerError, always, "/manifests/"), 0, true, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := decide(t, host(t, c.wrap), "linux/amd64")
			b := &pusher{children: []child{amd64("7")}}
			got, _, err := deliver(t, d, b, images.Options{})
			if b.builds != c.builds || (err != nil) != c.err {
				t.Fatalf("%d builds, %+v, %v", b.builds, got, err)
			}
			var failed *images.RegistryError
			if c.err && (!errors.As(err, &failed) || failed.Unauthorized != c.unauthorized || !strings.Contains(err.Error(), d.Images[0].Ref)) {
				t.Errorf("%T %v", err, err)
			}
		})
	}
}

// No request, and no credential, goes out by plain http to a host that is neither loopback nor listed.
func TestPlainHTTPOnlyWhereAllowed(t *testing.T) {
	at := host(t, nil)
	for name, c := range map[string]struct {
		registry string
		insecure []string
		allowed  bool
	}{
		"a private number":                         {"10.1.2.3:5000", nil, false},
		"a private number of a house":              {"192.168.1.2:5000", nil, false},
		"a private number, another port is listed": {"172.16.9.9:5000", []string{"172.16.9.9:5001"}, false},
		"a name without a zone of its own":         {"registry.local:5000", nil, false},
		"a listed host and port":                   {"10.1.2.3:5000", []string{"10.1.2.3:5000"}, true},
		"a listed host":                            {"registry.test:5000", []string{"registry.test"}, true},
		"another port is listed":                   {"registry.test:5000", []string{"registry.test:5001"}, false},
		"this machine":                             {"localhost:5000", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var plain atomic.Int64
			opts := images.Options{Insecure: c.insecure, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Scheme == "https" {
					return nil, errors.New("no TLS here")
				}
				plain.Add(1)
				r = r.Clone(r.Context())
				r.URL.Host = at
				return http.DefaultTransport.RoundTrip(r)
			})}
			d := decide(t, c.registry, "linux/amd64")
			have := &images.Registry{Keychain: keychain(nil), Transport: opts.Transport, Insecure: opts.Insecure}
			_, _, err := have.Have(t.Context(), d.Images[0], "fx", d.Platforms)
			if (err == nil) != c.allowed || (plain.Load() > 0) != c.allowed {
				t.Errorf("%d plain requests, %v", plain.Load(), err)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestErrorsHoldNoPassword(t *testing.T) {
	const password = "s3cr3t-of-the-test"
	at := host(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
	})
	d := decide(t, at, "linux/amd64")
	_, _, err := deliver(t, d, nil, images.Options{Keychain: fixed{Username: "u", Password: password}})
	text, _ := json.Marshal(err)
	if err == nil || strings.Contains(err.Error()+string(text)+fmt.Sprintf("%+v", err), password) {
		t.Errorf("%v", err)
	}
}

// fixed is a keychain that knows one login for everything.
type fixed authn.AuthConfig

func (f fixed) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(authn.AuthConfig(f)), nil
}
