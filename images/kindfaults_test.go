package images_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/platforms"
)

// layered is an image of the Instance fx with one layer.
func layered(t *testing.T, c child, content string) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(c.image(), static.NewLayer([]byte(content), types.OCILayer))
	must(t, err)
	return image
}

// layer is the digest of the only layer.
func layer(t *testing.T, image v1.Image) string {
	t.Helper()
	layers, err := image.Layers()
	must(t, err)
	digest, err := layers[0].Digest()
	must(t, err)
	return digest.String()
}

// kindPlan decides about one image for the kind cluster "dev".
func kindPlan(t *testing.T) *images.Decision {
	t.Helper()
	d, err := images.Plan(t.Context(), images.Request{
		Instance: "fx", Context: "kind-dev", Kind: "dev", Platforms: []string{"linux/amd64"},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: folder(t, "default", holdFiles())}},
	})
	must(t, err)
	return d
}

func hands(image ...v1.Image) *archiver {
	return &archiver{write: func(w io.Writer, name string) error { return writeLayout(w, name, image...) }}
}

func failing(prefix string, status int, words string) func(string, io.Writer) (int, bool) {
	return func(command string, stderr io.Writer) (int, bool) {
		if !strings.HasPrefix(command, prefix) {
			return 0, false
		}
		io.WriteString(stderr, words) //nolint:errcheck // a test
		return status, true
	}
}

// TestKindLoadFaults: what goes wrong on one node is told by its name and stops no other.
func TestKindLoadFaults(t *testing.T) {
	t.Parallel()
	const warning = `time="2026-11-30T09:44:11Z" level=warning msg="DEPRECATION: cgroup v1"` + "\n"
	cases := []struct {
		name string
		fail func(string, io.Writer) (int, bool)
		want string
	}{
		{"no room", failing("images import", 1, warning+"ctr: no space left on device\n"),
			"node b: failed to load image: ctr --namespace=k8s.io images import --all-platforms --digests --snapshotter=overlayfs - ended with status 1: ctr: no space left on device; it is on a, c"},
		{"no containerd", failing("", 1, `ctr: failed to dial "/run/containerd/containerd.sock"`), "node b: ctr --namespace=k8s.io images ls"},
		{"nothing is left", failing("images import", 0, ""), "node b: the import ended well and left nothing under docker.io/library/jr2-sandbox-fx-default:"},
		{"no configuration", failing("containerd config dump", 127, "sh: containerd: not found"), "node b: failed to detect containerd snapshotter"},
		{"endless words", failing("images import", 1, strings.Repeat("é ", 5000)+"the end"), "é the end; it is on a, c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engine, docker := newFakeEngine(t, "c", "a", "b")
			engine.nodes[2].fail = c.fail
			got, events, err := deliver(t, kindPlan(t), hands(layered(t, amd64("7"), "x")), images.Options{Docker: docker})
			var failed *images.KindLoadError
			if !errors.As(err, &failed) || !slices.Equal(failed.Loaded, []string{"a", "c"}) || failed.Failed["b"] == nil || len(got) != 0 {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "level=warning") || len(err.Error()) > 4000 {
				t.Errorf("%v", err)
			}
			if events[0] != "Building" || slices.Contains(events, "Loaded") {
				t.Errorf("%v", events)
			}
		})
	}
}

// TestKindTakesNoOtherImage: an import that leaves something else than the archive's image has failed.
func TestKindTakesNoOtherImage(t *testing.T) {
	t.Parallel()
	engine, docker := newFakeEngine(t, "a")
	d := kindPlan(t)
	name := "docker.io/library/" + d.Images[0].Ref
	node := engine.nodes[0]
	node.fail = func(command string, _ io.Writer) (int, bool) {
		if strings.HasPrefix(command, "images import") {
			node.has(t, name, layered(t, amd64("7"), "another"))
			return 0, true
		}
		return 0, false
	}
	_, _, err := deliver(t, d, hands(layered(t, amd64("7"), "x")), images.Options{Docker: docker})
	if err == nil || !strings.Contains(err.Error(), "which is not all of the image sha256:") {
		t.Errorf("%v", err)
	}
}

// TestKindHave: only what every node has whole, for the platform, of this Instance and with one USER saves the build.
func TestKindHave(t *testing.T) {
	t.Parallel()
	good := layered(t, amd64("7"), "x")
	strange := amd64("7")
	strange.instance = "other"
	for name, c := range map[string]struct {
		second func(t *testing.T, node *fakeNode, name string)
		have   bool
	}{
		"on both":    {func(t *testing.T, n *fakeNode, name string) { n.has(t, name, good) }, true},
		"on one":     {func(*testing.T, *fakeNode, string) {}, false},
		"not whole":  {func(t *testing.T, n *fakeNode, name string) { n.has(t, name, good); delete(n.blobs, layer(t, good)) }, false},
		"other USER": {func(t *testing.T, n *fakeNode, name string) { n.has(t, name, layered(t, amd64("8"), "x")) }, false},
		"platform":   {func(t *testing.T, n *fakeNode, name string) { n.has(t, name, layered(t, arm64("7"), "x")) }, false},
		"not ours":   {func(t *testing.T, n *fakeNode, name string) { n.has(t, name, layered(t, strange, "x")) }, false},
		"no config": {func(t *testing.T, n *fakeNode, name string) {
			n.has(t, name, good)
			id, err := good.ConfigName()
			must(t, err)
			delete(n.blobs, id.String())
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, docker := newFakeEngine(t, "a", "b")
			d := kindPlan(t)
			ref := "docker.io/library/" + d.Images[0].Ref
			engine.nodes[0].has(t, ref, good)
			c.second(t, engine.nodes[1], ref)
			builder := hands(good)
			got, events, err := deliver(t, d, builder, images.Options{Docker: docker})
			must(t, err)
			if (builder.builds == 0) != c.have || got["default"].User != "7" || got["default"].Ref != d.Images[0].Ref {
				t.Errorf("%d builds, %v, delivered %+v", builder.builds, events, got)
			}
			loads := slices.ContainsFunc(engine.nodes[0].commands, func(command string) bool { return strings.HasPrefix(command, "images import") })
			if loads { // the first had it all the time
				t.Errorf("%q", engine.nodes[0].commands)
			}
		})
	}
}

// TestKindRefusesBeforeTheBuild: where no node can take the image nothing is built.
func TestKindRefusesBeforeTheBuild(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*fakeEngine, *images.ConnectOptions)
		want string
	}{
		"no containerd": {func(e *fakeEngine, _ *images.ConnectOptions) { e.nodes[0].fail = failing("", 1, "ctr: no socket") }, "node a: ctr --namespace=k8s.io version ended with status 1: ctr: no socket; no node has it"},
		"paused":        {func(e *fakeEngine, _ *images.ConnectOptions) { e.nodes[0].state = "paused" }, "node a is down (its container is paused) — start it: docker unpause a; no node has it"},
		"an engine that fails": {func(e *fakeEngine, _ *images.ConnectOptions) {
			e.list = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message": "the disk burns"}`, 500) }
		}, "the disk burns"},
		"an engine that is silent": {func(e *fakeEngine, o *images.ConnectOptions) { e.list, o.Timeout = hang, 50*time.Millisecond }, "no answer within 50ms"},
		"no node":                  {func(e *fakeEngine, _ *images.ConnectOptions) { e.nodes = nil }, `has no node of the kind cluster "dev"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, docker := newFakeEngine(t, "a")
			c.set(engine, &docker)
			_, events, err := deliver(t, kindPlan(t), nil, images.Options{Docker: docker})
			if err == nil || !strings.Contains(err.Error(), c.want) || len(events) != 0 {
				t.Errorf("%v %v", err, events)
			}
		})
	}
}

// TestKindRefusesArchives: what is not one image for the platform comes to no node.
func TestKindRefusesArchives(t *testing.T) {
	t.Parallel()
	one := layered(t, amd64("7"), "x")
	broken := errors.New("the builder is gone")
	for name, c := range map[string]struct {
		builder images.Builder
		want    string
	}{
		"another platform":             {hands(layered(t, arm64("7"), "x")), "it holds no image for linux/amd64"},
		"two images":                   {hands(one, layered(t, amd64("7"), "y")), "it holds 2 entries and not one image"},
		"no archive":                   {&archiver{write: func(w io.Writer, _ string) error { _, err := io.WriteString(w, "hello"); return err }}, "read the image archive"},
		"nothing":                      {&archiver{write: func(io.Writer, string) error { return nil }}, "the image archive: manifest.json"},
		"a failed build":               {&archiver{pusher: pusher{err: broken}}, broken.Error()},
		"a builder that can only push": {&pusher{}, "the builder can only push them — set `registry` in jr2.config.ts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, docker := newFakeEngine(t, "a")
			_, _, err := deliver(t, kindPlan(t), c.builder, images.Options{Docker: docker})
			if err == nil || !strings.Contains(err.Error(), c.want) || len(engine.nodes[0].names) != 0 {
				t.Errorf("%v, the node has %v", err, engine.nodes[0].names)
			}
		})
	}
}

// TestKindCancel: a delivery that is given up ends, with the reason, and not as a node's failure.
func TestKindCancel(t *testing.T) {
	t.Parallel()
	engine, docker := newFakeEngine(t, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	release := make(chan struct{})
	defer close(release)
	engine.nodes[0].fail = func(command string, _ io.Writer) (int, bool) {
		if strings.HasPrefix(command, "images import") {
			cancel(reason)
			<-release
		}
		return 0, false
	}
	_, err := images.Deliver(ctx, kindPlan(t), func(context.Context) (images.Builder, error) { return hands(layered(t, amd64("7"), "x")), nil }, images.Options{Docker: docker})
	if !errors.Is(err, reason) {
		t.Errorf("%v", err)
	}
}

// TestPlanKindTakesOnePlatform: an archive holds one image.
func TestPlanKindTakesOnePlatform(t *testing.T) {
	t.Parallel()
	request := images.Request{
		Instance: "fx", Context: "kind-dev", Kind: "dev", Platforms: []string{"linux/amd64", "linux/arm64"},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: folder(t, "default", holdFiles())}},
	}
	var needs *platforms.NeedsRegistryError
	if d, err := images.Plan(t.Context(), request); !errors.As(err, &needs) || d.Kind != "" {
		t.Errorf("%v", err)
	}
	request.Registry = "r.test"
	if d, err := images.Plan(t.Context(), request); err != nil || d.Kind != "" { // pushed, on kind too
		t.Errorf("%+v %v", d, err)
	}
}
