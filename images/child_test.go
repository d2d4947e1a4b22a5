package images_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/devcluster/build"
)

// ownBuilder is what ConnectOptions need to start a buildkitd where nothing else answers.
func ownBuilder(t *testing.T) images.ConnectOptions {
	t.Helper()
	skipWithout(t, devcluster.CanBuildkit(), devcluster.ErrNoBuildkit)
	cache := &build.Cache{Log: func(line string) { t.Log(line) }}
	buildkit, err := cache.Ensure(t.Context(), build.Buildkit())
	must(t, err)
	runc, err := cache.Ensure(t.Context(), build.Runc())
	must(t, err)
	dir := t.TempDir()
	// The stock buildkitd looks for its runc under this name. A script puts it in the way, so that no other test sees it.
	must(t, os.Symlink(filepath.Join(runc, "runc"), filepath.Join(dir, "buildkit-runc")))
	script := fmt.Sprintf("#!/bin/sh\nPATH=%s:$PATH exec %s \"$@\"\n", dir, filepath.Join(buildkit, "buildkitd"))
	must(t, os.WriteFile(filepath.Join(dir, "buildkitd"), []byte(script), 0o755))
	return images.ConnectOptions{Buildkitd: filepath.Join(dir, "buildkitd"), BuildkitdRoot: filepath.Join(dir, "root"),
		Env: map[string]string{"DOCKER_HOST": "unix://" + dir + "/docker.sock"}}
}

// connectChild connects to a builder that it starts.
func connectChild(t *testing.T, opts images.ConnectOptions) *images.BuildKit {
	t.Helper()
	b, err := images.Connect(t.Context(), opts)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	if place := b.Place(); place.What != "buildkitd as a child" {
		t.Skipf("this machine runs a %s", place)
	}
	return b
}

// caFile writes the authority of a registry down.
func caFile(t *testing.T, reg *devcluster.Registry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(path, reg.CA, 0o600))
	return path
}

// TestTwoBuilders: a buildkitd as a child, told of a registry's authority and of a mirror of Docker Hub, and a buildkitd over TLS build and
// deliver one Instance to one digest. Each has a cache of its own, so nothing is reused. TestDockerEngine builds it too.
func TestTwoBuilders(t *testing.T) {
	t.Parallel()
	reg, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: user, Password: password, TLS: true})
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	_, err = reg.PushBusybox(t.Context(), "hub/team/busybox:1", "amd64")
	skipWithout(t, err, devcluster.ErrNoBusybox)
	base, err := reg.PushBusybox(t.Context(), "team/busybox:1", "amd64")
	must(t, err)
	opts := ownBuilder(t)
	opts.Registries = images.RegistryRules{CAFiles: []string{caFile(t, reg)}, Mirrors: images.Mirrors{"docker.io": {"https://" + reg.Host + "/hub"}}}
	child := connectChild(t, opts)
	far, connect := remoteBuilder(t, reg)
	testWrongTLS(t, connect)

	bench := &bench{registry: reg, base: base}
	d := bench.decide(t, "toolbox", oneInstance(base), "linux/amd64")
	d.Force = true
	first, _, err := bench.deliver(t, child, d, bench.options(nil))
	must(t, err)
	<-time.After(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // files get other times from now on
	second, _, err := bench.deliver(t, far, d, bench.options(nil))
	must(t, err)
	if first["default"] != second["default"] || first["default"].Digest == "" || first["default"].User != "1200" {
		t.Errorf("the child delivered %+v, the far one %+v", first, second)
	}
	bench.checkSingle(t, first["default"])

	mirrored := bench.decide(t, "mirrored", map[string]string{"Dockerfile": "FROM team/busybox:1\nCOPY Dockerfile /\n"}, "linux/amd64")
	_, _, err = bench.deliver(t, child, mirrored, bench.options(nil)) // docker.io itself can't be reached from a test
	must(t, err)

	place := child.Place()
	again, err := images.Connect(t.Context(), opts) // the cache has one user at a time
	var none *images.NoBuilderError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "it ended at once") {
		t.Errorf("%v %v", again, err)
	}
	must(t, child.Close())
	if conn, err := net.DialTimeout("unix", strings.TrimPrefix(place.Address, "unix://"), time.Second); err == nil {
		conn.Close() //nolint:errcheck // the test has failed
		t.Error("the child goes on")
	}
}

// oneInstance is an image context that every builder is given: it runs steps, and makes files by each instruction that can.
func oneInstance(base string) map[string]string {
	return map[string]string{
		"Dockerfile": "FROM " + base + "\nWORKDIR /work\nCOPY . .\nRUN cat hello && date +%N > /dev/null && echo built > /built && mkdir -p /deep/er && touch /deep/er/file\nUSER 1200\n",
		"hello":      "good morning\n", "a/b": "c",
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
