package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// TestAskRegistries: what a name points to now and for which architectures, that there is no such image, and a short reason when nobody answers.
func TestAskRegistries(t *testing.T) {
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	pushed, err := registry.PushBusybox(t.Context(), "jarvis/api:1", "amd64")
	must(t, err)
	parsed, err := registry.Reference("jarvis/api:1")
	must(t, err)
	head, err := remote.Head(parsed, registry.RemoteOptions(t.Context())...)
	must(t, err)
	ask := jr2.AskRegistries(images.Registry{}, images.LocalRegistry{Host: registry.Host})

	found, err := ask(t.Context(), pushed, nil)
	if err != nil || found.Digest != head.Digest.String() || !slices.Equal(found.Platforms, []string{"linux/amd64"}) {
		t.Errorf("%s: %+v, %v", pushed, found, err)
	}
	if found, err := ask(t.Context(), registry.Host+"/jarvis/api:2", nil); err != nil || !found.Missing {
		t.Errorf("no such image: %+v, %v", found, err)
	}
	if found, err := ask(t.Context(), "127.0.0.1:1/jarvis/api:1", nil); err == nil || found.Missing || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("nobody answers: %+v, %v", found, err)
	}
}
