package images_test

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

const (
	plane  = "dev-control-plane"
	worker = "dev-worker"
)

// testKind loads images into containers that carry kind's labels and run containerd, in the bench's Docker Engine.
func testKind(t *testing.T, b *bench) {
	k := startKind(t, b.builder.Address(), "dev", plane, worker)
	for _, c := range []struct {
		name string
		test func(*testing.T, *bench, *kindCluster)
	}{
		{"Docker Engine builds", testKindLoad},
		{"BuildKit builds", testKindArchive},
		{"sweep", testKindSweep},
		{"no such cluster", testKindNone},
		{"a node is down", testKindDown}, // last: it stays down
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b, k) })
	}
}

// testKindLoad loads an image that the nodes' own engine built, finds it again without a record, and brings it back where it was removed.
func testKindLoad(t *testing.T, b *bench, k *kindCluster) {
	d := k.plan(t, "toolbox", "FROM "+b.base+"\nCOPY hello /hello\nUSER 1200\n")
	got, events, err := b.deliver(t, b.builder, d, k.options(b))
	must(t, err)
	one := got["default"]
	if one.User != "1200" || one.Ref != d.Images[0].Ref || strings.Contains(one.Ref, "/") {
		t.Errorf("delivered %+v", one)
	}
	if want := []string{"Chosen", "Building", "Loading", "Loading", "User", "Loaded"}; !reflect.DeepEqual(kinds(events), want) {
		t.Errorf("events %v", kinds(events))
	}
	if loaded := events[len(events)-1].(images.Loaded); loaded.Cluster != "dev" || loaded.Digest != one.Digest || loaded.Ref != one.Ref {
		t.Errorf("%+v", loaded)
	}
	name := "docker.io/library/" + one.Ref // by which the kubelet asks for it
	for _, node := range []string{plane, worker} {
		if held := k.names(t, node); held[name] != one.Digest || one.Digest == "" {
			t.Errorf("%s holds %v, delivered %+v", node, held, one)
		}
	}
	found, events, err := b.deliver(t, nil, d, k.options(b))
	must(t, err)
	if found["default"] != one || len(events) != 1 || events[0].(images.Fresh).Source != "nodes" {
		t.Errorf("found %+v, events %+v", found, events)
	}

	k.exec(t, worker, "ctr", "--namespace=k8s.io", "images", "rm", "--sync", name)
	_, events, err = b.deliver(t, b.builder, d, k.options(b))
	must(t, err)
	if at := slices.IndexFunc(events, isLoading); at < 0 || events[at].(images.Loading).Node != worker || slices.ContainsFunc(events[at+1:], isLoading) {
		t.Errorf("loaded again: %+v", events)
	}
	if held := k.names(t, worker); held[name] != one.Digest {
		t.Errorf("%s holds %v", worker, held)
	}
	other := k.plan(t, "toolbox", "FROM "+b.base+"\nCOPY hello /hello\nUSER 1200\n")
	other.Instance = "strange" // the same name is no proof: the labels must be ours
	if _, have, err := k.nodes(t).Have(t.Context(), other.Images[0], "strange", other.Platforms); have || err != nil {
		t.Errorf("an image of another Instance counts: %v %v", have, err)
	}
}

func isLoading(e images.Event) bool {
	_, is := e.(images.Loading)
	return is
}

// testKindArchive loads what a buildkitd built: the image that it would push, by its digest.
func testKindArchive(t *testing.T, b *bench, k *kindCluster) {
	options := devcluster.BuildkitOptions{}
	options.TrustRegistry(b.registry)
	builder := startBuilder(t, options)
	dockerfile := "FROM scratch\nCOPY hello /hello\n"
	got, events, err := b.deliver(t, builder, k.plan(t, "archive", dockerfile), k.options(b))
	must(t, err)
	if want := []string{"Chosen", "Building", "Loading", "Loading", "NoUser", "Loaded"}; !reflect.DeepEqual(kinds(events), want) {
		t.Errorf("events %v", kinds(events))
	}
	pushed, _, err := b.deliver(t, builder, b.decide(t, "archive", map[string]string{"Dockerfile": dockerfile, "hello": "archive"}, "linux/amd64"), b.options(nil))
	must(t, err)
	if got["default"].Digest != pushed["default"].Digest || got["default"].Digest == "" {
		t.Errorf("loaded %+v, pushed %+v", got, pushed)
	}
	if held := k.names(t, worker); held["docker.io/library/"+got["default"].Ref] != got["default"].Digest {
		t.Errorf("%s holds %v", worker, held)
	}
	d := k.plan(t, "broken", "FROM scratch\nCOPY missing /\n")
	var failed *images.BuildError
	if _, _, err := b.deliver(t, builder, d, k.options(b)); !errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
}

// testKindSweep removes from each node what nobody needs, under all of its names, and nothing that is not ours.
func testKindSweep(t *testing.T, b *bench, k *kindCluster) {
	kept := k.plan(t, "kept", "FROM scratch\nCOPY hello /kept\n")
	_, _, err := b.deliver(t, b.builder, kept, k.options(b))
	must(t, err)
	keep := "docker.io/library/" + kept.Images[0].Ref
	k.exec(t, worker, "ctr", "--namespace=k8s.io", "images", "tag", keep, "docker.io/library/second:1")
	roots := &images.Roots{}
	roots.Add(kept.Images[0].Ref)
	before := k.names(t, worker)
	nodes := k.nodes(t)
	would, err := images.SweepKind(t.Context(), nodes, roots, images.SweepOptions{DryRun: true})
	must(t, err)
	if !maps.Equal(before, k.names(t, worker)) {
		t.Error("a dry run removed something")
	}
	done, err := images.SweepKind(t.Context(), nodes, roots, images.SweepOptions{})
	must(t, err)
	if len(done) != 2 || len(would) != 2 {
		t.Fatalf("would sweep %+v, swept %+v", would, done)
	}
	for i, node := range done {
		if node.Images != 2 || node.Kept != 1 || node.Bytes == 0 || !slices.Equal(node.Removed, would[i].Removed) {
			t.Errorf("would sweep %+v, swept %+v", would[i], node)
		}
		left := k.names(t, node.Node)
		for name, digest := range left {
			if digest != before[keep] && !strings.HasPrefix(name, "import-") {
				t.Errorf("%s is left on %s", name, node.Node)
			}
		}
		if left[keep] == "" || left["docker.io/library/second:1"] != "" {
			t.Errorf("%s: left %v", node.Node, left)
		}
	}
	if done[0].Node != plane || !strings.HasPrefix(done[0].String(), "node dev-control-plane: images: swept 2 (up to ") {
		t.Errorf("%s", done[0])
	}
}

// testKindNone: the context may name a cluster of another engine.
func testKindNone(t *testing.T, b *bench, k *kindCluster) {
	d := k.plan(t, "lost", "FROM scratch\nCOPY hello /\n")
	d.Kind = "other"
	_, _, err := b.deliver(t, nil, d, k.options(b))
	var none *images.NoKindNodesError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), `no node of the kind cluster "other"`) || !strings.Contains(err.Error(), k.Host) {
		t.Errorf("%v", err)
	}
	opts := k.options(b)
	opts.Docker.Env["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
	if _, _, err := b.deliver(t, nil, d, opts); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "DOCKER_HOST is set") {
		t.Errorf("%v", err)
	}
}

// testKindDown: the other nodes get the image, the error names the one that is down, and asking again builds nothing.
func testKindDown(t *testing.T, b *bench, k *kindCluster) {
	k.stop(t, worker)
	d := k.plan(t, "down", "FROM scratch\nCOPY hello /\n")
	got, events, err := b.deliver(t, b.builder, d, k.options(b))
	var failed *images.KindLoadError
	var down *images.NodeDownError
	if !errors.As(err, &failed) || !slices.Equal(failed.Loaded, []string{plane}) || len(failed.Failed) != 1 || !errors.As(err, &down) || down.Node != worker || len(got) != 0 {
		t.Fatalf("%v, delivered %v", err, got)
	}
	want := "image " + d.Images[0].Ref + ` is not on every node of the kind cluster "dev": node dev-worker is down (its container is exited) — start it: docker start dev-worker; it is on dev-control-plane`
	if err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if last := events[len(events)-1]; !isLoading(last) || last.(images.Loading).Node != plane || k.names(t, plane)["docker.io/library/"+d.Images[0].Ref] == "" {
		t.Errorf("events %+v, %s holds %v", events, plane, k.names(t, plane))
	}
	if _, events, again := b.deliver(t, nil, d, k.options(b)); !errors.As(again, &down) || again.Error() != want || len(events) != 0 {
		t.Errorf("%v %v", again, kinds(events))
	}
	swept, err := images.SweepKind(t.Context(), k.nodes(t), &images.Roots{}, images.SweepOptions{})
	if !errors.As(err, &down) || down.Node != worker || len(swept) != 1 || swept[0].Node != plane || swept[0].Images == 0 {
		t.Errorf("%v, swept %+v", err, swept)
	}
	k.stop(t, plane)
	if _, events, err := b.deliver(t, nil, d, k.options(b)); !errors.As(err, &failed) || len(failed.Failed) != 2 || !strings.HasSuffix(err.Error(), "; no node has it") || len(events) != 0 {
		t.Errorf("%v %v", err, kinds(events))
	}
}
