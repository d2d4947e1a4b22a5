package images_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
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

func TestConnectTriesTheDefaultSockets(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	b, err := images.Connect(t.Context(), images.ConnectOptions{})
	if err == nil {
		address := b.Address()
		must(t, b.Close())
		t.Skipf("this machine runs a BuildKit at %s", address)
	}
	var none *images.NoBuilderError
	if !errors.As(err, &none) || len(none.Tried) != 2 || none.Tried[1].Address != "unix://"+dir+"/buildkit/buildkitd.sock" {
		t.Errorf("%v", err)
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
