package devcluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/platforms"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/moby/buildkit/client"
	"github.com/tonistiigi/fsutil"

	"jr2.dev/jr2/internal/devcluster"
)

func startBuildkitd(t *testing.T, options devcluster.BuildkitOptions) *devcluster.Buildkitd {
	t.Helper()
	builder, err := devcluster.StartBuildkitd(t.Context(), options)
	if errors.Is(err, devcluster.ErrNoBuildkit) {
		devcluster.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := builder.Close(); err != nil {
			t.Error(err)
		}
	})
	return builder
}

func TestBuildkitd(t *testing.T) {
	t.Parallel()
	registry := startRegistry(t, devcluster.RegistryOptions{TLS: true})
	var options devcluster.BuildkitOptions
	options.TrustRegistry(registry)
	builder := startBuildkitd(t, options)
	base, err := registry.PushBusybox(t.Context(), "busybox:1", "amd64")
	if errors.Is(err, devcluster.ErrNoBusybox) {
		devcluster.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	buildkit, err := client.New(t.Context(), builder.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer buildkit.Close()
	dir := t.TempDir()
	dockerfile := "FROM " + base + "\nRUN echo built > /built && id && uname -m\nUSER 1000\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := fsutil.NewFS(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = buildkit.Solve(t.Context(), nil, client.SolveOpt{
		Frontend:      "dockerfile.v0",
		FrontendAttrs: map[string]string{"platform": "linux/amd64"},
		LocalMounts:   map[string]fsutil.FS{"context": folder, "dockerfile": folder},
		Exports: []client.ExportEntry{{Type: client.ExporterImage, Attrs: map[string]string{
			"name": registry.Host + "/app:1", "push": "true"}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := registry.Reference("app:1")
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref, registry.RemoteOptions(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "1000" || config.Architecture != "amd64" {
		t.Errorf("the image is for %s and runs as %q", config.Architecture, config.Config.User)
	}
}

// An interpreter is there for the whole machine.
func TestBuildkitdEmulates(t *testing.T) {
	release, err := devcluster.HoldBinfmt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := devcluster.UnregisterBinfmt("arm64"); err != nil {
		t.Fatal(err)
	}
	builder := startBuildkitd(t, devcluster.BuildkitOptions{})
	buildkit, err := client.New(t.Context(), builder.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer buildkit.Close()
	builds := func() bool {
		t.Helper()
		workers, err := buildkit.ListWorkers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(workers, func(w *client.WorkerInfo) bool {
			return slices.ContainsFunc(w.Platforms, func(p platforms.Platform) bool { return p.Architecture == "arm64" })
		})
	}
	if devcluster.Emulated("arm64") || builds() {
		t.Skip("this machine runs arm64 already")
	}
	unregister, err := devcluster.RegisterBinfmt("arm64")
	if errors.Is(err, devcluster.ErrNoBinfmt) {
		devcluster.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unregister()
	eventually(t, func(ctx context.Context) error {
		if !builds() {
			return errors.New("the builder does not list arm64")
		}
		return nil
	})
}

// A builder that was killed starts again on what it has left behind.
func TestBuildkitdKeepsItsDir(t *testing.T) {
	t.Parallel()
	// Longer than the address of a socket may be.
	options := devcluster.BuildkitOptions{Dir: filepath.Join(t.TempDir(), strings.Repeat("long", 25))}
	first := startBuildkitd(t, options)
	if _, err := devcluster.StartBuildkitd(t.Context(), options); !errors.As(err, new(*devcluster.InUseError)) {
		t.Errorf("a second one in the same directory: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := startBuildkitd(t, options)
	buildkit, err := client.New(t.Context(), second.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer buildkit.Close()
	if _, err := buildkit.ListWorkers(t.Context()); err != nil {
		t.Error(err)
	}
}
