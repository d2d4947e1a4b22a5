package jr2_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/kindnodes"
)

// TestKindNeedsNoRegistry: an image goes from the Docker Engine into the node of a kind cluster; a sweep keeps it, and the one that it
// replaced, and takes the one before.
func TestKindNeedsNoRegistry(t *testing.T) {
	t.Parallel()
	engine, err := devcluster.StartDockerd(t.Context(), devcluster.DockerOptions{})
	if errors.Is(err, devcluster.ErrNoDocker) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
	defer engine.Close() //nolint:errcheck // the end of the test
	cluster, err := kindnodes.Start(t.Context(), kindnodes.Options{Host: engine.Host, Cluster: "dev", Nodes: []string{"dev-control-plane"}})
	must(t, err)
	defer cluster.Close() //nolint:errcheck // the end of the test
	w := loneWorld(t, node("a"), node("dev-control-plane"))
	files := map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1"), "images/default/Dockerfile": "FROM scratch\nCOPY Dockerfile /\n"}
	dir := folder(t, files)
	kind := func(o *jr2.Options) { o.Context, o.Env["DOCKER_HOST"] = "kind-dev", engine.Host }
	// again converges a changed context folder, and says which image came of it.
	again := func(content string) string {
		must(t, os.WriteFile(filepath.Join(dir, "images/default/content"), []byte(content), 0o644))
		told := w.up(t, dir, into("on-kind"), kind)
		must(t, told.err)
		ref := onlyImage(t, told).Ref
		told.tells(t, []string{"…", `sandbox image "default": building ` + ref, "  no USER declared — the pod's uid-1000 fallback applies", "  load → every node of kind cluster dev"})
		w.recordNames(t, "on-kind", ref)
		held, err := cluster.Images(t.Context(), "dev-control-plane")
		must(t, err)
		if strings.Contains(ref, "/") || held["docker.io/library/"+ref] == "" {
			t.Errorf("the node holds %v, and not %s", held, ref)
		}
		return ref
	}
	// swept are the refs that a sweep takes from the node, or would take.
	swept := func(dry bool) []string {
		report, err := jr2.GC(t.Context(), jr2.GCOptions{Config: w.Config(), Context: "kind-dev", Env: map[string]string{"DOCKER_HOST": engine.Host}, DryRun: dry})
		must(t, err)
		if len(report.Nodes) != 1 || report.Nodes[0].Node != "dev-control-plane" || !slices.Equal(report.Removed, unprefixed(report.Nodes[0].Removed)) {
			t.Errorf("swept %+v", report)
		}
		return unprefixed(report.Nodes[0].Removed)
	}

	first := again("one")
	second := again("two")
	unchanged := w.up(t, dir, into("on-kind"), kind, func(o *jr2.Options) { o.Env["DOCKER_HOST"] = "unix:///nowhere" })
	must(t, unchanged.err)
	if unchanged.result.Changed != 0 {
		t.Errorf("an unchanged converge changed something:\n%s", unchanged.lines)
	}
	if gone := swept(false); len(gone) != 0 {
		t.Errorf("swept %q, of %s and %s", gone, first, second)
	}
	third := again("three")
	if would, gone := swept(true), swept(false); !slices.Equal(would, []string{first}) || !slices.Equal(gone, would) {
		t.Errorf("would sweep %q, swept %q, of %s, %s and %s", would, gone, first, second, third)
	}

	must(t, cluster.Stop(t.Context(), "dev-control-plane"))
	must(t, os.WriteFile(filepath.Join(dir, "images/default/content"), []byte("four"), 0o644))
	told := w.up(t, dir, into("on-kind"), kind)
	var down *images.NodeDownError
	if !errors.As(told.err, &down) || down.Node != "dev-control-plane" || strings.Contains(told.lines, "building") {
		t.Errorf("the converge said %v:\n%s", told.err, told.lines)
	}
	w.recordNames(t, "on-kind", third) // what was there stays
	plan := w.plan(t, dir, func(o *jr2.Options) { kind(o); o.Namespace = "on-kind" })
	must(t, plan.err)
}

// unprefixed are refs as Docker lists them, of those that containerd lists.
func unprefixed(refs []string) []string {
	out := []string{}
	for _, ref := range refs {
		out = append(out, strings.TrimPrefix(ref, "docker.io/library/"))
	}
	slices.Sort(out)
	return out
}
