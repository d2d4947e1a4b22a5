package jr2_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
)

// TestF26LocalRegistryHasAnotherName: the cluster says by which name nodes know the registry that we push to. TestF27: a file that an ignore
// file leaves out is touched, and the next converge needs no builder.
func TestF26LocalRegistryHasAnotherName(t *testing.T) {
	t.Parallel()
	y := theYard(t, "amd64")
	w := loneWorld(t, node("a"))
	hosting := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "local-registry-hosting"},
		Data:       map[string]string{"localRegistryHosting.v1": "host: " + y.registry.Host + "\nhostFromContainerRuntime: kind-registry:5000\n"},
	}
	public := w.client.CoreV1().ConfigMaps(metav1.NamespacePublic)
	_, err := public.Create(t.Context(), hosting, metav1.CreateOptions{})
	must(t, err)
	defer func() { must(t, public.Delete(t.Context(), hosting.Name, metav1.DeleteOptions{})) }()
	dir := y.review(t)
	toolbox := filepath.Join(dir, "workflows", "toolbox")
	must(t, os.WriteFile(filepath.Join(toolbox, ".dockerignore"), []byte("*.log\n"), 0o644))
	first := w.up(t, dir, into("review-local"), y.use)
	must(t, first.err)
	ref := onlyImage(t, first).Ref
	if !strings.HasPrefix(ref, "kind-registry:5000/team/jr2-sandbox-fx-review-toolbox:") {
		t.Errorf("delivered %s", ref)
	}
	first.tells(t, []string{"…", `sandbox image "toolbox": building ` + strings.Replace(ref, "kind-registry:5000", y.registry.Host, 1), "…", "  push → " + y.registry.Host + "/team"})
	w.recordNames(t, "review-local", ref)

	must(t, os.WriteFile(filepath.Join(toolbox, "build.log"), []byte("noise"), 0o644))
	second := w.up(t, dir, into("review-local"), y.use, func(o *jr2.Options) { o.BuildkitHost = "unix:///nowhere" })
	must(t, second.err)
	if second.result.Changed != 0 || onlyImage(t, second).Ref != ref {
		t.Errorf("a touched log file changed something:\n%s", second.lines)
	}
}
