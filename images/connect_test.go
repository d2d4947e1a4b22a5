package images_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/images"
)

func TestConnectSaysWhatWasTried(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "s.sock")
	listener, err := net.Listen("unix", silent)
	must(t, err)
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the end of the test
	cases := []struct{ name, address, reason string }{
		{"no socket", "unix:///nowhere/b.sock", "no such file or directory"},
		{"nobody listens", "tcp://127.0.0.1:1", "connection refused"},
		{"no answer", "unix://" + silent, "no answer within 200ms"},
		{"not an address", "tcp://%zz", "invalid URL"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := images.Connect(t.Context(), images.ConnectOptions{Address: c.address, Timeout: 200 * time.Millisecond})
			var none *images.NoBuilderError
			if !errors.As(err, &none) || len(none.Tried) != 1 || none.Tried[0].Address != c.address || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v", err)
			}
		})
	}
	_, err = images.Connect(t.Context(), images.ConnectOptions{Address: "unix:///nowhere/b.sock"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the reason cannot be matched: %v", err)
	}
}

func TestConnectTriesAllPlacesInOrder(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"XDG_RUNTIME_DIR": dir, "DOCKER_HOST": "unix://" + dir + "/docker.sock"}
	b, err := images.Connect(t.Context(), images.ConnectOptions{Env: env, Buildkitd: dir + "/buildkitd", BuildkitdRoot: dir + "/root"})
	if err == nil {
		place := b.Place()
		must(t, b.Close())
		t.Skipf("this machine runs a %s", place)
	}
	var none *images.NoBuilderError
	if !errors.As(err, &none) {
		t.Fatal(err)
	}
	var tried []string
	for _, attempt := range none.Tried {
		tried = append(tried, attempt.What+" "+attempt.Address)
	}
	want := []string{"BuildKit unix:///run/buildkit/buildkitd.sock", "BuildKit unix://" + dir + "/buildkit/buildkitd.sock",
		"Docker Engine unix://" + dir + "/docker.sock", "buildkitd as a child "}
	if !slices.Equal(tried, want) {
		t.Errorf("tried %q, want %q", tried, want)
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := images.Connect(ctx, images.ConnectOptions{Address: "tcp://127.0.0.1:1"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
