package devcluster_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"errors"

	"jr2.dev/jr2/internal/devcluster"
)

func startRegistry(t *testing.T, options devcluster.RegistryOptions) *devcluster.Registry {
	t.Helper()
	registry, err := devcluster.StartRegistry(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	return registry
}

func push(t *testing.T, registry *devcluster.Registry, image string) v1.Hash {
	t.Helper()
	ref, err := registry.Reference(image)
	if err != nil {
		t.Fatal(err)
	}
	random, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, random, registry.RemoteOptions(t.Context())...); err != nil {
		t.Fatal(err)
	}
	digest, err := random.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]devcluster.RegistryOptions{
		"plain":        {},
		"auth":         {User: "me", Password: "secret"},
		"tls":          {TLS: true},
		"auth and tls": {User: "me", Password: "secret", TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			registry := startRegistry(t, options)
			digest := push(t, registry, "a/b:1")
			ref, err := registry.Reference("a/b:1")
			if err != nil {
				t.Fatal(err)
			}
			head, err := remote.Head(ref, registry.RemoteOptions(t.Context())...)
			if err != nil || head.Digest != digest {
				t.Errorf("HEAD: %v, %v; want %v", head, err, digest)
			}
			if registry.Requests(http.MethodHead) == 0 || registry.Requests("") <= registry.Requests(http.MethodHead) {
				t.Error("the requests are not counted")
			}
			_, err = remote.Get(ref, remote.WithTransport(registry.Transport()), remote.WithAuth(authn.Anonymous))
			var refused *transport.Error
			if errors.As(err, &refused) != (options.User != "") {
				t.Errorf("without credentials: %v", err)
			}
			if _, err := remote.Get(ref); (err != nil) != (options.TLS || options.User != "") {
				t.Errorf("with the system's certificates: %v", err)
			}
		})
	}
}

func TestRegistryKeepsItsImages(t *testing.T) {
	t.Parallel()
	options := devcluster.RegistryOptions{Dir: filepath.Join(t.TempDir(), "kept")}
	first, err := devcluster.StartRegistry(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	push(t, first, "a/b:1")
	digest := push(t, first, "a/b:1")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := startRegistry(t, options)
	if second.Host != first.Host {
		t.Errorf("it was at %s and is at %s", first.Host, second.Host)
	}
	ref, err := second.Reference("a/b:1")
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref, second.RemoteOptions(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := image.Digest(); err != nil || got != digest {
		t.Errorf("the tag names %v (%v), want %v", got, err, digest)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		blob, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		blob.Close()
	}
}

func TestWriteDockerConfig(t *testing.T) {
	t.Parallel()
	registry := startRegistry(t, devcluster.RegistryOptions{User: "me", Password: "secret"})
	dir := filepath.Join(t.TempDir(), "docker")
	if err := registry.WriteDockerConfig(dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Auths map[string]authn.AuthConfig
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if got := config.Auths[registry.Host]; got.Username != "me" || got.Password != "secret" {
		t.Errorf("config.json has %v", config.Auths)
	}
}
