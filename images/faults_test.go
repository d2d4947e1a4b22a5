package images_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// A fault is what a registry does to the requests that it is about, from the first on.
type fault struct {
	method, path string
	times        int64 // how often; 0 means always
	do           http.HandlerFunc
	slow         bool // it answers, byte by byte, in place of do
}

func answer(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// reset takes some of the body and ends the connection.
func reset(w http.ResponseWriter, r *http.Request) {
	io.CopyN(io.Discard, r.Body, 100) //nolint:errcheck // what comes is enough
	panic(http.ErrAbortHandler)
}

// hang answers nothing until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // else nobody notices that the client is gone
	<-r.Context().Done()
}

// drops writes each byte of an answer after a while, and all of them for longer than the client would stand silence.
type drops struct{ http.ResponseWriter }

func (d drops) Write(p []byte) (int, error) {
	for i := range p {
		if i%(len(p)/5+1) == 0 {
			time.Sleep(100 * time.Millisecond) // what is tested is time itself
		}
		if _, err := d.ResponseWriter.Write(p[i : i+1]); err != nil {
			return i, err
		}
		d.ResponseWriter.(http.Flusher).Flush()
	}
	return len(p), nil
}

// faulty is a registry with a fault. seen counts the requests that met it, and the HEADs.
type faulty struct {
	fault
	met, heads atomic.Int64
}

func (f *faulty) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/manifests/") {
			f.heads.Add(1)
		}
		if (f.do != nil || f.slow) && slices.Contains(strings.Fields(f.method), r.Method) && strings.Contains(r.URL.Path, f.path) {
			if n := f.met.Add(1); f.times == 0 || n <= f.times {
				if f.slow {
					next.ServeHTTP(drops{w}, r)
					return
				}
				f.do(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// TestRegistryFaults: with a real builder, what a registry does wrong is tried again or is one clear error, and nothing counts as delivered
// that the registry did not take.
func TestRegistryFaults(t *testing.T) {
	t.Parallel()
	const manifests, blobs, uploads = "/manifests/", "/blobs/", "/blobs/uploads/"
	cases := []struct {
		name  string
		fault fault
		want  any // the type of the error
		text  string
		built bool // whether a builder was asked
	}{
		{"push needs a login", fault{"POST", uploads, 0, answer(401, "WWW-Authenticate", `Basic realm="x"`), false}, &images.RegistryError{}, "log in first: docker login", false},
		{"push forbidden", fault{"POST", uploads, 0, answer(403), false}, &images.RegistryError{}, "does not let these credentials push", false},
		{"push broken", fault{"POST", uploads, 0, answer(500), false}, &images.RegistryError{}, "so nothing was built", false},
		{"away for a moment before the build", fault{"POST", uploads, 1, answer(503), false}, nil, "", true},
		{"busy with the question", fault{"HEAD", manifests, 4, answer(429, "Retry-After", "1"), false}, nil, "", true},
		{"busy with the push", fault{"PUT", manifests, 1, answer(429, "Retry-After", "1"), false}, nil, "", true},
		{"busy for longer than the builder tries", fault{"PUT", manifests, 6, answer(429, "Retry-After", "1"), false}, nil, "", true},
		{"busy for good", fault{"PUT", manifests, 0, answer(429), false}, &images.PushError{}, "429 Too Many Requests", true},
		{"away for a moment", fault{"PUT", manifests, 1, answer(503), false}, nil, "", true},
		{"reset in the middle of a blob", fault{"PUT PATCH", blobs, 1, reset, false}, nil, "", true},
		{"broken manifest", fault{"PUT", manifests, 0, answer(500), false}, &images.PushError{}, "500 Internal Server Error", true},
		{"refused manifest", fault{"PUT", manifests, 0, answer(400), false}, &images.PushError{}, "400 Bad Request", true},
		{"silent", fault{"HEAD", manifests, 0, hang, false}, &images.RegistryError{}, "is silent for 300ms", false},
		{"slow, and never silent", fault{method: "GET", path: manifests, times: 1, slow: true}, nil, "", true},
		{"silent once it is built", fault{"GET", manifests, 0, hang, false}, &images.RegistryError{}, "is silent for 300ms", true},
	}
	daemon, err := devcluster.StartBuildkitd(t.Context(), devcluster.BuildkitOptions{Log: func(line string) { t.Log(line) }})
	skipWithout(t, err, devcluster.ErrNoBuildkit)
	t.Cleanup(func() { must(t, daemon.Close()) })
	builder, err := images.Connect(t.Context(), images.ConnectOptions{Address: daemon.Address})
	must(t, err)
	t.Cleanup(func() { must(t, builder.Close()) })
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &faulty{fault: c.fault}
			d := decide(t, host(t, f.wrap), "linux/amd64")
			write(t, d.Images[0].Dir+"/Dockerfile", fmt.Sprintf("FROM scratch\nCOPY Dockerfile /%d\nUSER 7\n", i))
			d = planAgain(t, d)
			asked := &counted{Builder: builder}
			got, events, err := deliver(t, d, asked, images.Options{Silence: 300 * time.Millisecond})
			if f.met.Load() == 0 {
				t.Error("the fault was not met")
			}
			if asked.builds.Load() > 0 != c.built {
				t.Errorf("%d builds", asked.builds.Load())
			}
			if c.want == nil {
				must(t, err)
				if got["default"].User != "7" || got["default"].Digest == "" {
					t.Errorf("%+v", got)
				}
				return
			}
			if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", c.want) || !strings.Contains(err.Error(), c.text) || len(got) != 0 || slices.Contains(events, "Pushed") {
				t.Errorf("%v %v %T %v", got, events, err, err)
			}
			if record := (images.Record{}).With(got); len(record.Sandbox) != 0 {
				t.Errorf("recorded %v", record)
			}
		})
	}
}

// planAgain plans after the folder was changed.
func planAgain(t *testing.T, d *images.Decision) *images.Decision {
	t.Helper()
	again, err := images.Plan(t.Context(), images.Request{
		Instance: d.Instance, Registry: d.Registry, Context: "prod", Platforms: d.Platforms,
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: d.Images[0].Dir}},
	})
	must(t, err)
	return again
}

// counted counts the builds of a Builder.
type counted struct {
	images.Builder
	builds atomic.Int64
}

func (c *counted) Build(ctx context.Context, req images.BuildRequest) (images.BuildResult, error) {
	c.builds.Add(1)
	return c.Builder.Build(ctx, req)
}

// TestLostRecordCostsOneHead: images that the registry holds are found by one HEAD for each; with the record nobody is asked at all.
func TestLostRecordCostsOneHead(t *testing.T) {
	f := &faulty{}
	at := host(t, f.wrap)
	request := images.Request{
		Instance: "fx", Registry: at + "/team", Context: "prod", Platforms: []string{"linux/amd64", "linux/arm64"},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: folder(t, "default", holdFiles())}, {Dir: folder(t, "toolbox", toolboxFiles())}},
	}
	d, err := images.Plan(t.Context(), request)
	must(t, err)
	b := &pusher{children: []child{amd64("7"), arm64("7")}}
	first, _, err := deliver(t, d, b, images.Options{})
	must(t, err)
	f.heads.Store(0)
	again, events, err := deliver(t, d, nil, images.Options{})
	must(t, err)
	if f.heads.Load() != 2 || b.builds != 2 || !reflect.DeepEqual(again, first) || !slices.Equal(events, []string{"Fresh", "Fresh"}) {
		t.Errorf("%d HEADs, %+v, %v", f.heads.Load(), again, events)
	}
	f.heads.Store(0)
	record := images.Record{}.With(again)
	request.Previous = &record
	recorded, err := images.Plan(t.Context(), request)
	must(t, err)
	_, _, err = deliver(t, recorded, nil, images.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("nobody is to be asked, and %s was", r.URL)
	})})
	must(t, err)
	if f.heads.Load() != 0 {
		t.Errorf("%d HEADs with the record", f.heads.Load())
	}
}

// TestCredentialHelper: what a helper program knows is found as docker finds it, by the spellings of Docker Hub too.
func TestCredentialHelper(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	at := host(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name, secret, _ := r.BasicAuth(); name != user || secret != password {
				answer(401, "WWW-Authenticate", `Basic realm="x"`)(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	script := fmt.Sprintf("#!/bin/sh\nread host\n[ \"$host\" = %q ] || { echo 'credentials not found in native keychain'; exit 1; }\necho '{\"Username\":\"%s\",\"Secret\":\"%s\"}'\n", at, user, password)
	must(t, os.WriteFile(filepath.Join(dir, "docker-credential-ours"), []byte(script), 0o755))
	hub := base64.StdEncoding.EncodeToString([]byte("hub:token"))
	write(t, filepath.Join(dir, "config.json"), fmt.Sprintf(`{"credHelpers": {%q: "ours"}, "auths": {"https://index.docker.io/v1/": {"auth": %q}}}`, at, hub))
	d := decide(t, at, "linux/amd64")
	_, err := images.Deliver(t.Context(), d, func(context.Context) (images.Builder, error) { return &pusher{children: []child{amd64("")}}, nil }, images.Options{})
	must(t, err)

	for _, prefix := range []string{"docker.io/team", "index.docker.io/team", "team"} {
		var seen atomic.Value
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			if name, _, ok := r.BasicAuth(); ok {
				seen.Store(name)
			}
			return nil, errors.New("no network here")
		})
		ping := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/v2/" {
				return &http.Response{StatusCode: 401, Status: "401 Unauthorized", Request: r, Body: http.NoBody, Header: http.Header{"Www-Authenticate": {`Basic realm="x"`}}}, nil
			}
			return transport(r)
		})
		d := decide(t, prefix, "linux/amd64")
		registry := &images.Registry{Transport: ping}
		if _, _, err := registry.Have(t.Context(), d.Images[0], "fx", d.Platforms); err == nil || seen.Load() != "hub" {
			t.Errorf("%s: %v, as %v", prefix, err, seen.Load())
		}
	}
}
