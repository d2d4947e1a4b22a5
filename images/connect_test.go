package images_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
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
		{"a container, and no docker command", "docker-container://builder", "executable file not found"},
		{"a pod, and no kubectl", "kube-pod://builder", "executable file not found"},
		{"a scheme of nobody", "carrier-pigeon://builder", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasPrefix(c.reason, "executable") {
				t.Setenv("PATH", t.TempDir())
			}
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

// TestFrozenBuilder: a build ends by its context also where the builder says nothing any more, within the time that a build gets to end.
func TestFrozenBuilder(t *testing.T) {
	t.Parallel()
	daemon, err := devcluster.StartBuildkitd(t.Context(), devcluster.BuildkitOptions{})
	skipWithout(t, err, devcluster.ErrNoBuildkit)
	t.Cleanup(func() { must(t, daemon.Close()) })
	way := newWay(t, strings.TrimPrefix(daemon.Address, "unix://"))
	builder, err := images.Connect(t.Context(), images.ConnectOptions{Address: "unix://" + way.socket})
	must(t, err)
	t.Cleanup(func() { builder.Close() }) //nolint:errcheck // the end of the test
	builder.Drain(200 * time.Millisecond)
	testStuckBuild(t, builder)
	d := decide(t, host(t, nil), "linux/amd64")
	write(t, d.Images[0].Dir+"/Dockerfile", "FROM scratch\nCOPY Dockerfile /frozen\n")
	d = planAgain(t, d)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	opts := images.Options{Keychain: keychain(nil), Events: func(e images.Event) {
		if _, ok := e.(images.Step); ok {
			way.freeze()
			cancel(enough)
		}
	}}
	start := time.Now()
	got, err := images.Deliver(ctx, d, func(context.Context) (images.Builder, error) { return builder, nil }, opts)
	if !errors.Is(err, enough) || len(got) != 0 || time.Since(start) > time.Minute {
		t.Errorf("after %s: %v %v", time.Since(start), got, err)
	}
}

// testStuckBuild: a cancelled build that does not end is not waited for longer than it is given.
func testStuckBuild(t *testing.T, builder *images.BuildKit) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough, goOn := errors.New("enough"), make(chan struct{})
	defer close(goOn)
	start := time.Now()
	_, err := builder.Build(ctx, images.BuildRequest{
		Dir: folder(t, "stuck", map[string]string{"Dockerfile": "FROM scratch\nCOPY Dockerfile /stuck\n"}), Ref: host(t, nil) + "/stuck:1", Platforms: []string{"linux/amd64"},
		BeforePush: func(context.Context, []images.Built) error {
			cancel(enough)
			<-goOn // whatever the context says
			return nil
		},
	})
	if !errors.Is(err, enough) || time.Since(start) > time.Minute {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

// A way leads to a builder until it freezes: then nothing passes, and nothing is closed.
type way struct {
	socket string
	frozen chan struct{}
	once   sync.Once
}

func (w *way) freeze() { w.once.Do(func() { close(w.frozen) }) }

func newWay(t *testing.T, to string) *way {
	t.Helper()
	w := &way{socket: filepath.Join(t.TempDir(), "b.sock"), frozen: make(chan struct{})}
	listener, err := net.Listen("unix", w.socket)
	must(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended); listener.Close() }) //nolint:errcheck // the end of the test
	carry := func(from, to net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			select {
			case <-w.frozen:
				<-ended
				from.Close() //nolint:errcheck // the builder is to end, too
				to.Close()   //nolint:errcheck // as above
				return
			default:
			}
			if err != nil {
				to.Close() //nolint:errcheck // as the other end did
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			inner, err := net.Dial("unix", to)
			if err != nil {
				return
			}
			go carry(outer, inner)
			go carry(inner, outer)
		}
	}()
	return w
}

func TestConnectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := images.Connect(ctx, images.ConnectOptions{Address: "tcp://127.0.0.1:1"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
