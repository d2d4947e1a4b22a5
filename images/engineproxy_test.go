package images_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moby/buildkit/client"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// TestEngineWithContainerdStore: an engine that keeps images in containerd's store pushes by itself. None of those can be started here, so a
// real buildkitd stands behind the two endpoints of an engine's API that lead to its BuildKit.
func TestEngineWithContainerdStore(t *testing.T) {
	t.Parallel()
	reg, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: user, Password: password, TLS: true})
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	options := devcluster.BuildkitOptions{}
	options.TrustRegistry(reg)
	daemon, err := devcluster.StartBuildkitd(t.Context(), options)
	skipWithout(t, err, devcluster.ErrNoBuildkit)
	t.Cleanup(func() { must(t, daemon.Close()) })
	behind, err := client.New(t.Context(), daemon.Address)
	must(t, err)
	t.Cleanup(func() { behind.Close() }) //nolint:errcheck // the end of the test
	server := httptest.NewServer(engineAPI(daemon, behind))
	t.Cleanup(server.Close)

	address := "tcp://" + strings.TrimPrefix(server.URL, "http://")
	builder, err := images.Connect(t.Context(), images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": address}})
	must(t, err)
	t.Cleanup(func() { must(t, builder.Close()) })
	if place := builder.Place().String(); place != "Docker Engine 29.1.0 at "+address+" (DOCKER_HOST is set)" {
		t.Errorf("found %s", place)
	}
	b := &bench{registry: reg, builder: builder}
	d := b.decide(t, "toolbox", map[string]string{"Dockerfile": "FROM scratch\nCOPY . /\nUSER 1200\n", "a": "1"}, "linux/amd64")
	got, events, err := b.deliver(t, builder, d, b.options(nil))
	must(t, err)
	if want := []string{"Chosen", "Building", "User", "Pushed"}; got["default"].User != "1200" || !reflect.DeepEqual(kinds(events), want) {
		t.Errorf("%+v %v", got, kinds(events))
	}
	b.checkSingle(t, got["default"])
	testEngineTLS(t, engineAPI(daemon, behind))
}

// testEngineTLS finds an engine over TLS by docker's variables.
func testEngineTLS(t *testing.T, api http.Handler) {
	t.Helper()
	server := httptest.NewUnstartedServer(api)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	home, other := t.TempDir(), t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, home+"/.docker/ca.pem", string(authority))
	write(t, other+"/ca.pem", string(authority))
	host := "tcp://" + strings.TrimPrefix(server.URL, "https://")
	for name, c := range map[string]struct {
		env  map[string]string
		word string // of the error; empty for none
	}{
		"verified by the folder": {map[string]string{"DOCKER_HOST": host, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": other}, ""},
		"verified by the home":   {map[string]string{"DOCKER_HOST": host, "DOCKER_TLS_VERIFY": "1", "HOME": home}, ""},
		"not verified":           {map[string]string{"DOCKER_HOST": host, "DOCKER_TLS": "1"}, ""},
		"not known":              {map[string]string{"DOCKER_HOST": host, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": t.TempDir()}, "certificate signed by unknown authority"},
		"plain":                  {map[string]string{"DOCKER_HOST": host}, "Docker Engine at " + host},
	} {
		b, err := images.Connect(t.Context(), images.ConnectOptions{Env: c.env, Buildkitd: "/nowhere", Timeout: 5 * time.Second})
		if c.word != "" {
			if err == nil || !strings.Contains(err.Error(), c.word) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		must(t, err)
		if !strings.HasPrefix(b.Place().What, "Docker Engine 29") && !strings.HasPrefix(b.Place().What, "BuildKit") {
			t.Errorf("%s: %s", name, b.Place())
		}
		must(t, b.Close())
	}
}

// engineAPI is as much of an engine's API as leads to BuildKit.
func engineAPI(daemon *devcluster.Buildkitd, behind *client.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			w.Header().Set("Api-Version", "1.52")
		case strings.HasSuffix(r.URL.Path, "/info"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"OSType":"linux","ServerVersion":"29.1.0","DriverStatus":[["driver-type","io.containerd.snapshotter.v1"]]}`)
		case r.URL.Path == "/grpc":
			upgrade(w, r, func() (net.Conn, error) { return net.Dial("unix", strings.TrimPrefix(daemon.Address, "unix://")) })
		case r.URL.Path == "/session":
			upgrade(w, r, func() (net.Conn, error) {
				meta := map[string][]string{}
				for key, values := range r.Header {
					if key := strings.ToLower(key); strings.HasPrefix(key, "x-docker-") {
						meta[key] = values
					}
				}
				return behind.Dialer()(r.Context(), r.Header.Get("Upgrade"), meta)
			})
		default:
			http.NotFound(w, r)
		}
	})
}

// upgrade turns the request's connection into one to what dial reaches.
func upgrade(w http.ResponseWriter, r *http.Request, dial func() (net.Conn, error)) {
	inner, err := dial()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer inner.Close() //nolint:errcheck // the client is gone
	outer, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer outer.Close() //nolint:errcheck // as above
	fmt.Fprintf(outer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	done := make(chan struct{}, 2)
	go func() { io.Copy(inner, buffered); done <- struct{}{} }() //nolint:errcheck // the ends tell each other
	go func() { io.Copy(outer, inner); done <- struct{}{} }()    //nolint:errcheck // as above
	<-done
}
