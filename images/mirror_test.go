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
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"jr2.dev/jr2/images"
)

// TestK07MirrorSpellings: a mirror is a host with a port and a path if it has them, and maybe a scheme; a registry is a host.
func TestK07MirrorSpellings(t *testing.T) {
	for _, c := range []struct{ host, mirror, reason string }{
		{"docker.io", "mirror.test", ""}, {"ghcr.io", "mirror.test:5000/ghcr/all/", ""}, {"r.test:5000", "https://mirror.test", ""},
		{"r.test", "http://10.0.0.7:5000", ""}, {"localhost", "localhost", ""}, {"[::1]:5000", "[::1]:5001/x", ""}, {"R.test", "mirror.test/a_b", ""},
		{"r.test/team", "mirror.test", "a host with an optional port"},
		{"https://r.test", "mirror.test", "a host with an optional port"},
		{"team", "mirror.test", "names no host"},
		{"", "mirror.test", "names no host"},
		{"r.test", "", "names no host"},
		{"r.test", "team/hub", "names no host"},
		{"r.test", "mirror.test/Team", "must be lowercase"},
		{"r.test", "mirror.test//x", "invalid reference"},
		{"r.test", "ftp://mirror.test", "ftp is no scheme"},
		{"r.test", "mirror.test/x?y=1", "invalid reference"},
		{"r.test", "mirror.test/x:v1", "no tag"},
		{"r.test", "me:hush@mirror.test", "a host with an optional port"},
		{"r.test", "https://me:hush@mirror.test/x", "a host with an optional port"},
	} {
		err := images.Mirrors{c.host: {c.mirror}}.Check()
		var wrong *images.MirrorError
		switch {
		case c.reason == "" && err != nil, c.reason != "" && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), c.reason)):
			t.Errorf("%s=%s: %v", c.host, c.mirror, err)
		case err != nil && strings.Contains(err.Error(), "hush"):
			t.Errorf("the password shows: %v", err)
		}
	}
}

// copied gives both registries the same image of one name, and returns its digest.
func copied(t *testing.T, refs ...string) (digest string) {
	t.Helper()
	for _, ref := range refs {
		digest = pushImage(t, ref, amd64("7").image())
	}
	return digest
}

// counting counts requests for manifests, and does do with them when there is one.
func counting(n *atomic.Int64, do http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") && r.Method == http.MethodGet {
				n.Add(1)
				if do != nil {
					do(w, r)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// TestK07LooksThroughMirrors: mirrors go first, in their order, and only a mirror that has the image is believed.
func TestK07LooksThroughMirrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   http.HandlerFunc // of the mirror; nil lets it answer
		has  bool
	}{
		{"it has the image", nil, true},
		{"it has none", answer(404), false},
		{"it wants a login", answer(401, "WWW-Authenticate", `Basic realm="x"`), false},
		{"it refuses", answer(403), false},
		{"it is broken", answer(400), false},
		{"it is silent", hang, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mirrored, own atomic.Int64
			registry, mirror := host(t, counting(&own, nil)), host(t, counting(&mirrored, c.do))
			digest := copied(t, registry+"/team/app:v1", mirror+"/hub/x/team/app:v1")
			own.Store(0)
			mirrored.Store(0)
			r := &images.Registry{Keychain: keychain(nil), Mirrors: images.Mirrors{registry: {"127.0.0.1:1", mirror + "/hub/x/"}}}
			for _, ref := range []string{"/team/app:v1", "/team/app@" + digest} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				target, err := r.Look(ctx, registry+ref)
				must(t, err)
				want := ""
				if c.has {
					want = mirror + "/hub/x"
				}
				if target.Digest != digest || target.Mirror != want || !slices.Equal(target.Platforms, []string{"linux/amd64"}) {
					t.Errorf("%s: %+v", ref, target)
				}
			}
			if mirrored.Load() == 0 || (own.Load() == 0) != c.has {
				t.Errorf("%d requests to the mirror, %d to the registry", mirrored.Load(), own.Load())
			}
		})
	}
}

// TestK07MirrorsProveNoAbsence: a registry that is away is not known to lack what its mirrors lack.
func TestK07MirrorsProveNoAbsence(t *testing.T) {
	t.Parallel()
	mirror := host(t, nil)
	r := &images.Registry{Keychain: keychain(nil), Mirrors: images.Mirrors{"127.0.0.1:1": {mirror + "/a"}}}
	_, err := r.Look(t.Context(), "127.0.0.1:1/team/app:v1")
	var absent *images.AbsentError
	var away *images.RegistryError
	if errors.As(err, &absent) || !errors.As(err, &away) || len(away.Mirrors) != 1 || !strings.Contains(err.Error(), "; mirror "+mirror+"/a: the registry holds no image "+mirror+"/a/team/app:v1") {
		t.Errorf("%v", err)
	}
	registry := host(t, nil)
	r.Mirrors = images.Mirrors{registry: {mirror}}
	if _, err := r.Look(t.Context(), registry+"/team/app:v1"); !errors.As(err, &absent) || absent.Ref != registry+"/team/app:v1" {
		t.Errorf("%v", err)
	}
}

// TestK07MirrorsByHost: all names of Docker Hub are one host, a port makes another host, 443 does not.
func TestK07MirrorsByHost(t *testing.T) {
	t.Parallel()
	const login = "mirrors'"
	var seen atomic.Value
	mirrors := roundTripper(func(r *http.Request) (*http.Response, error) {
		name, _, _ := r.BasicAuth()
		if strings.Contains(r.URL.Path, "/manifests/") {
			seen.CompareAndSwap("", r.URL.Scheme+"://"+name+"@"+r.URL.Host+r.URL.Path)
		}
		if r.URL.Path == "/v2/" && r.URL.Scheme == "http" == strings.HasPrefix(r.URL.Host, "plain") {
			return &http.Response{StatusCode: 401, Request: r, Body: http.NoBody, Header: http.Header{"Www-Authenticate": {`Basic realm="x"`}}}, nil
		}
		return nil, errors.New("no network here")
	})
	r := &images.Registry{
		Transport: mirrors,
		Keychain: only{map[string]authn.AuthConfig{
			"mirror.test:5000": {Username: login, Password: "p"}, "plain.test:5000": {Username: login, Password: "p"}, "r.test": {Username: "not for mirrors", Password: "p"},
		}},
		Mirrors: images.Mirrors{"registry-1.docker.io": {"mirror.test:5000/hub"}, "R.test:443": {"http://plain.test:5000"}, "r.test:5000": {"mirror.test:5000/five"}},
	}
	for ref, want := range map[string]string{
		"busybox:1":                   "https://" + login + "@mirror.test:5000/v2/hub/library/busybox/manifests/1",
		"docker.io/team/x":            "https://" + login + "@mirror.test:5000/v2/hub/team/x/manifests/latest",
		"index.docker.io/team/x:1":    "https://" + login + "@mirror.test:5000/v2/hub/team/x/manifests/1",
		"r.test/team/x:1":             "http://" + login + "@plain.test:5000/v2/team/x/manifests/1",
		"r.test:5000/team/x:1":        "https://" + login + "@mirror.test:5000/v2/five/team/x/manifests/1",
		"r.test:5001/team/x:1":        "https://@r.test:5001/v2/team/x/manifests/1",
		"other.test/r.test/team/x:1":  "https://@other.test/v2/r.test/team/x/manifests/1",
		"docker.io.test/library/x:1":  "https://@docker.io.test/v2/library/x/manifests/1",
		"mirror.test:5000/hub/team/x": "https://" + login + "@mirror.test:5000/v2/hub/team/x/manifests/latest", // its own
	} {
		seen.Store("")
		if _, err := r.Look(t.Context(), ref); err == nil || seen.Load() != want {
			t.Errorf("%s: first asked %q, want %q", ref, seen.Load(), want)
		}
	}
}

// only knows the logins of some hosts.
type only struct{ hosts map[string]authn.AuthConfig }

func (o only) Resolve(target authn.Resource) (authn.Authenticator, error) {
	if login, ok := o.hosts[target.RegistryStr()]; ok {
		return authn.FromConfig(login), nil
	}
	return authn.Anonymous, nil
}

// TestK07WhatIsBuiltGoesPastMirrors: what is pushed is looked for, pushed and read back at the registry itself.
func TestK07WhatIsBuiltGoesPastMirrors(t *testing.T) {
	t.Parallel()
	registry := host(t, nil)
	d := decide(t, registry, "linux/amd64")
	r := &images.Registry{Keychain: keychain(nil), Mirrors: images.Mirrors{registry: {"127.0.0.1:1"}}}
	b := &pusher{children: []child{amd64("7")}}
	got, _, err := deliver(t, d, b, images.Options{Deliverer: r})
	must(t, err)
	if _, have, err := r.Have(t.Context(), d.Images[0], "fx", d.Platforms); err != nil || !have || got["default"].Digest == "" {
		t.Errorf("%v %v %+v", have, err, got)
	}
}

func ExampleMirrors() {
	mirrors := images.Mirrors{
		"docker.io": {"mirror.example.com:5000/hub"},
		"ghcr.io":   {"mirror.example.com:5000/ghcr", "http://10.0.0.7:5000"},
	}
	fmt.Println(mirrors.Check())
	fmt.Println(images.Mirrors{"ghcr.io/team": {"mirror.example.com"}}.Check())
	registry := &images.Registry{Mirrors: mirrors}
	_ = registry // registry.Look(ctx, "busybox:1") asks mirror.example.com:5000/hub/library/busybox first
	// Output:
	// <nil>
	// registry mirrors of "ghcr.io/team": a registry is a host with an optional port, such as registry.example.com:5000
}
