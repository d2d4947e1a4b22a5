package images_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
)

// TestKindSweepFaults: a node that can't be read is no node without images, and what stays is told.
func TestKindSweepFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*fakeNode)
		want string
		left int
	}{
		"all is well": {func(*fakeNode) {}, "", 0},
		"unreadable":  {func(n *fakeNode) { clear(n.blobs) }, "node a: list the images that were built: containerd lists 1 images and none of them can be read", 2},
		"it stays":    {func(n *fakeNode) { n.fail = failing("images rm", 0, "") }, "node a: remove image docker.io/library/old:1: it was removed and is still listed as ", 2},
		"refused":     {func(n *fakeNode) { n.fail = failing("images rm", 1, "ctr: in use") }, "ended with status 1: ctr: in use", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, docker := newFakeEngine(t, "a", "b")
			for _, node := range engine.nodes {
				node.has(t, "docker.io/library/old:1", layered(t, amd64("7"), "x"))
			}
			c.set(engine.nodes[0])
			kind := &images.Kind{Cluster: "dev", Docker: docker}
			defer kind.Close() //nolint:errcheck // the end of the test
			done, err := images.SweepKind(t.Context(), kind, &images.Roots{}, images.SweepOptions{})
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%v", err)
			}
			if len(done) != 2 || done[1].Images != 1 || len(engine.nodes[1].names) != 0 || len(engine.nodes[0].names) != c.left {
				t.Errorf("%+v, left %v", done, engine.nodes[0].names)
			}
		})
	}
}

// TestKindSweepsItsOwnNodes: a cluster of the same name on another machine is not swept by the needs of this one.
func TestKindSweepsItsOwnNodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machines map[string]string
		want     string
	}{
		"its own":            {map[string]string{"a": "machine-a", "b": "machine-b", "c": "gone"}, ""},
		"no machine ids":     {map[string]string{"a": "", "b": ""}, ""},
		"another machine":    {map[string]string{"a": "machine-a", "b": "other"}, "its machine id is machine-b, and the cluster's node has other"},
		"no such node":       {map[string]string{"a": "machine-a"}, "the cluster has no node of that name"},
		"a cluster of none":  {map[string]string{}, "the cluster has no node of that name"},
		"what is unreadable": {map[string]string{"a": "machine-a", "b": "machine-b"}, "node b: which machine it is cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, docker := newFakeEngine(t, "a", "b", "c")
			engine.nodes[2].state = "exited" // says nothing
			for _, node := range engine.nodes {
				node.has(t, "docker.io/library/old:1", layered(t, amd64("7"), "x"))
			}
			if name == "what is unreadable" {
				engine.nodes[1].fail = failing("cat", 1, "cat: no such file")
			}
			kind := &images.Kind{Cluster: "dev", Docker: docker, Machines: c.machines}
			defer kind.Close() //nolint:errcheck // the end of the test
			done, err := images.SweepKind(t.Context(), kind, &images.Roots{}, images.SweepOptions{})
			var down *images.NodeDownError
			if c.want == "" {
				if !errors.As(err, &down) || len(done) != 2 || len(engine.nodes[0].names) != 0 {
					t.Errorf("%+v %v", done, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || len(done) != 0 || len(engine.nodes[0].names) != 2 {
				t.Errorf("%+v %v", done, err)
			}
		})
	}
}
