package images_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/devcluster/build"
)

// TestChildBuildkitd: where nothing else answers a buildkitd is started, builds, and ends with Close.
func TestChildBuildkitd(t *testing.T) {
	skipWithout(t, devcluster.CanBuildkit(), devcluster.ErrNoBuildkit)
	cache := &build.Cache{Log: func(line string) { t.Log(line) }}
	buildkit, err := cache.Ensure(t.Context(), build.Buildkit())
	must(t, err)
	runc, err := cache.Ensure(t.Context(), build.Runc())
	must(t, err)
	dir := t.TempDir()
	// The stock buildkitd looks for its runc under this name.
	must(t, os.Symlink(filepath.Join(runc, "runc"), filepath.Join(dir, "buildkit-runc")))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	opts := images.ConnectOptions{Buildkitd: filepath.Join(buildkit, "buildkitd"), BuildkitdRoot: filepath.Join(dir, "root"),
		Env: map[string]string{"DOCKER_HOST": "unix://" + dir + "/docker.sock"}}
	b, err := images.Connect(t.Context(), opts)
	must(t, err)
	place := b.Place()
	if place.What != "buildkitd as a child" {
		must(t, b.Close())
		t.Skipf("this machine runs a %s", place)
	}
	reg, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	bench := &bench{builder: b, registry: reg}
	d := bench.decide(t, "plain", map[string]string{"Dockerfile": "FROM scratch\nCOPY Dockerfile /\n"}, "linux/amd64")
	got, _, err := bench.deliver(t, b, d, bench.options(nil))
	must(t, err)
	ref, err := reg.Reference(strings.TrimPrefix(got["default"].Ref, reg.Host+"/"))
	must(t, err)
	if _, err := remote.Head(ref, reg.RemoteOptions(t.Context())...); err != nil {
		t.Error(err)
	}
	second, err := images.Connect(t.Context(), opts) // the cache has one user at a time
	var none *images.NoBuilderError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "it ended at once") {
		t.Errorf("%v %v", second, err)
	}
	must(t, b.Close())
	if conn, err := net.DialTimeout("unix", strings.TrimPrefix(place.Address, "unix://"), time.Second); err == nil {
		conn.Close() //nolint:errcheck // the test has failed
		t.Error("the child goes on")
	}
}

func TestChildThatDoesNotStart(t *testing.T) {
	path, err := exec.LookPath("false")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	_, err = images.Connect(t.Context(), images.ConnectOptions{Buildkitd: path, BuildkitdRoot: dir, Env: map[string]string{"DOCKER_HOST": "unix://" + dir + "/docker.sock"}})
	var none *images.NoBuilderError
	if err == nil {
		t.Skip("this machine runs a builder")
	}
	if !errors.As(err, &none) || (os.Geteuid() == 0 && !strings.Contains(err.Error(), "it ended at once: exit status 1")) {
		t.Errorf("%v", err)
	}
}
