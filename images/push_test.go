package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestPushFaults: what we push ourselves, for an engine that can't, meets the same faults: it is tried again or is one error, and the tag
// never stands before all of the image does.
func TestPushFaults(t *testing.T) {
	t.Parallel()
	cut := func(_ http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 100) //nolint:errcheck // what comes is enough
		panic(http.ErrAbortHandler)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		name, method, path string
		times              int64
		do                 http.HandlerFunc
		fails              string
	}{
		{"reset in the middle of a blob", "PATCH", "/blobs/uploads/", 1, cut, ""},
		{"away in the middle", "PUT", "/blobs/uploads/", 1, status(503), ""},
		{"busy with a child", "PUT", "/manifests/sha256:", 1, status(429), ""},
		{"busy with the list", "PUT", "/manifests/v1", 1, status(429), ""},
		{"refuses blobs", "PATCH", "/blobs/uploads/", 1 << 30, status(400), "400"},
		{"refuses a child", "PUT", "/manifests/sha256:", 1 << 30, status(400), "400"},
		{"refuses the list", "PUT", "/manifests/v1", 1 << 30, status(403), "403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
			var met atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == c.method && strings.Contains(r.URL.Path, c.path) && met.Add(1) <= c.times {
					c.do(w, r)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Start()
			t.Cleanup(server.Close)
			req := BuildRequest{Ref: strings.TrimPrefix(server.URL, "http://") + "/team/app:v1", Platforms: []string{"linux/amd64", "linux/arm64"}, Keychain: authn.NewMultiKeychain()}
			digest, err := push(t.Context(), req, []v1.Image{randomImage(t), randomImage(t)})
			at, failed := standing(t, req.Ref)
			if met.Load() == 0 {
				t.Error("the fault was not met")
			}
			switch {
			case c.fails == "" && (err != nil || at != digest || failed != nil):
				t.Errorf("pushed %s, %v; the tag is at %q, %v", digest, err, at, failed)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || at != ""):
				t.Errorf("%v; the tag is at %q", err, at)
			}
		})
	}
}

func randomImage(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(4096, 2)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// standing is what a tag names, read to the last layer; empty when it names nothing.
func standing(t *testing.T, ref string) (string, error) {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(parsed, remote.WithContext(context.Background()))
	if err != nil {
		return "", nil
	}
	digest, err := index.Digest()
	manifest, failed := index.IndexManifest()
	if err := errors.Join(err, failed); err != nil {
		return "", err
	}
	for _, entry := range manifest.Manifests {
		image, err := index.Image(entry.Digest)
		if err != nil {
			return digest.String(), err
		}
		layers, err := image.Layers()
		if err != nil {
			return digest.String(), err
		}
		for _, layer := range layers {
			stream, err := layer.Compressed()
			if err != nil {
				return digest.String(), err
			}
			_, err = io.Copy(io.Discard, stream)
			if err := errors.Join(err, stream.Close()); err != nil {
				return digest.String(), fmt.Errorf("a layer: %w", err)
			}
		}
	}
	return digest.String(), nil
}

// TestPushByDigest: without a tag there is one image, or one list, under its digest.
func TestPushByDigest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for _, platforms := range [][]string{{"linux/amd64"}, {"linux/amd64", "linux/arm64"}} {
		req := BuildRequest{Ref: host + "/team/app:v1", Platforms: platforms, ByDigest: true, Keychain: authn.NewMultiKeychain()}
		var made []v1.Image
		for range platforms {
			made = append(made, randomImage(t))
		}
		digest, err := push(t.Context(), req, made)
		if err != nil {
			t.Fatal(err)
		}
		at, err := name.NewDigest(host + "/team/app@" + digest)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(at); err != nil {
			t.Error(err)
		}
	}
	repo, err := name.NewRepository(host + "/team/app")
	if err != nil {
		t.Fatal(err)
	}
	if tags, err := remote.List(repo); len(tags) > 0 {
		t.Errorf("the tags %q, %v", tags, err)
	}
}
