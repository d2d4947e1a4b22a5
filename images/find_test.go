package images_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// TestFindStartsNothing: a buildkitd that Connect would start is told, with what it could build for here, and is not started.
func TestFindStartsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	marker := filepath.Join(dir, "started")
	must(t, os.WriteFile(filepath.Join(dir, "buildkitd"), []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o755))
	opts := images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": "unix://" + dir + "/docker.sock"}, Buildkitd: dir + "/buildkitd", BuildkitdRoot: dir + "/root"}
	found, err := images.Find(t.Context(), opts)
	var none *images.NoBuilderError
	switch {
	case errors.As(err, &none) && os.Geteuid() != 0: // who is not root starts none
		if last := none.Tried[len(none.Tried)-1]; last.What != "buildkitd as a child" || !strings.Contains(last.Err.Error(), "needs root") {
			t.Errorf("got %v", err)
		}
	case err != nil:
		t.Error(err)
	case !found.Starts && found.Place.Address != "":
		t.Skipf("this machine runs a %s", found.Place)
	case found.Place.What != "buildkitd as a child" || !slices.Contains(found.Platforms, "linux/amd64") && !slices.Contains(found.Platforms, "linux/arm64"):
		t.Errorf("got %+v", found)
	}
	for _, left := range []string{marker, dir + "/root"} {
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was made (%v)", left, err)
		}
	}
}

// TestFindWhatIsNotThere: the errors of Connect.
func TestFindWhatIsNotThere(t *testing.T) {
	t.Parallel()
	silent := filepath.Join(t.TempDir(), "s.sock")
	listener, err := net.Listen("unix", silent)
	must(t, err)
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the end of the test
	for address, reason := range map[string]string{"unix:///nowhere/b.sock": "no such file", "tcp://127.0.0.1:1": "connection refused", "unix://" + silent: "no answer within 200ms"} {
		_, err := images.Find(t.Context(), images.ConnectOptions{Address: address, Timeout: 200 * time.Millisecond})
		var none *images.NoBuilderError
		if !errors.As(err, &none) || len(none.Tried) != 1 || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", address, err)
		}
	}
	// An executable that is not there can't be started.
	found, err := images.Find(t.Context(), images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": "unix:///nowhere/docker.sock"}, Buildkitd: "/nowhere/buildkitd"})
	var none *images.NoBuilderError
	if !errors.As(err, &none) && (err != nil || found.Starts) {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestFindARealBuilder(t *testing.T) {
	t.Parallel()
	daemon, err := devcluster.StartBuildkitd(t.Context(), devcluster.BuildkitOptions{})
	skipWithout(t, err, devcluster.ErrNoBuildkit)
	t.Cleanup(func() { must(t, daemon.Close()) })
	found, err := images.Find(t.Context(), images.ConnectOptions{Address: daemon.Address})
	must(t, err)
	if found.Starts || found.Place.Address != daemon.Address || len(found.Platforms) == 0 {
		t.Errorf("got %+v", found)
	}
}
