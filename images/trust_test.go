package images_test

import (
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// TestTransportTrusts: with the authority's file a registry is read, without it it is not.
func TestTransportTrusts(t *testing.T) {
	t.Parallel()
	reg, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{TLS: true})
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	ref, err := reg.PushBusybox(t.Context(), "team/app:v1", "amd64")
	skipWithout(t, err, devcluster.ErrNoBusybox)
	for name, files := range map[string][]string{"": {caFile(t, reg)}, "unknown authority": nil} {
		transport, err := images.Transport(files...)
		must(t, err)
		r := &images.Registry{Keychain: keychain(nil), Transport: transport}
		target, err := r.Look(t.Context(), ref)
		if name == "" && (err != nil || target.Digest == "") || name != "" && (err == nil || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q: %+v, %v", files, target, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	write(t, empty, "nothing")
	if _, err := images.Transport(empty); err == nil || !strings.Contains(err.Error(), empty+" holds no certificate") {
		t.Errorf("%v", err)
	}
}
