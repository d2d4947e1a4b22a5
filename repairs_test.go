package jr2_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/names"
)

// TestUpTakesBackWhatIsOursByName: notes of jr2 on its objects that somebody edited are written again, whoever edited them and how, and the plan
// says so.
func TestUpTakesBackWhatIsOursByName(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("repairs")).err)
	deployments := w.client.AppsV1().Deployments("repairs")
	asked, err := deployments.Get(t.Context(), names.Orchestrator, metav1.GetOptions{})
	must(t, err)
	for name, edit := range map[string]struct {
		patch   string
		kind    types.PatchType
		manager string
	}{
		"the images": {`{"metadata":{"annotations":{"jr2.dev/images":"{bad"}}}`, types.MergePatchType, "kubectl-annotate"},
		"a label":    {`{"metadata":{"labels":{"jr2.dev/instance":"other"}}}`, types.MergePatchType, "kubectl-label"},
		"by apply": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"jr2-orchestrator","annotations":{"jr2.dev/images":"[]"}}}`,
			types.ApplyPatchType, "somebody"},
		"the pods' notes": {`{"spec":{"template":{"metadata":{"annotations":{"jr2.dev/env-digest":"0"}}}}}`, types.MergePatchType, "kubectl-edit"},
	} {
		options := metav1.PatchOptions{FieldManager: edit.manager}
		if edit.kind == types.ApplyPatchType {
			force := true
			options.Force = &force
		}
		_, err := deployments.Patch(t.Context(), names.Orchestrator, edit.kind, []byte(edit.patch), options)
		must(t, err)
		if plan := w.plan(t, dir, into("repairs")); plan.err != nil || plan.plan.Changes() == 0 || plan.plan.Err() != nil {
			t.Errorf("%s: the plan has %d changes, %v", name, plan.plan.Changes(), plan.err)
		}
		if told := w.up(t, dir, into("repairs")); told.err != nil {
			t.Errorf("%s: %v", name, told.err)
		}
		now, err := deployments.Get(t.Context(), names.Orchestrator, metav1.GetOptions{})
		must(t, err)
		for _, key := range []string{names.AnnotationImages} {
			if now.Annotations[key] != asked.Annotations[key] {
				t.Errorf("%s: %s is %q, want %q", name, key, now.Annotations[key], asked.Annotations[key])
			}
		}
		if now.Labels[names.LabelInstance] != "my-instance" || now.Spec.Template.Annotations[names.AnnotationEnvDigest] != asked.Spec.Template.Annotations[names.AnnotationEnvDigest] {
			t.Errorf("%s: the labels are %v, the pods' annotations %v", name, now.Labels, now.Spec.Template.Annotations)
		}
	}
}

// TestGCKeepsWhatItCantJudge: an Instance whose map somebody edited keeps all its images, the error names the object and the way on, and the images of
// others are swept.
func TestGCKeepsWhatItCantJudge(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("edited")).err)
	for _, edit := range []struct{ object, patch string }{
		{"Deployment edited/" + names.Orchestrator, `{"metadata":{"annotations":{"jr2.dev/images":"{bad"}}}`},
		{"Deployment edited/" + names.Orchestrator, `{"metadata":{"annotations":{"jr2.dev/images":"\u001b[2J"}}}`},
		{"Deployment edited/" + names.Orchestrator, `{"metadata":{"annotations":{"jr2.dev/images":"{}","jr2.dev/replaced-images":"{\"a\":1}"}}}`},
		{"ConfigMap edited/" + names.ImagesConfig, `{"data":{"images.json":"null and void"}}`},
	} {
		var err error
		if strings.HasPrefix(edit.object, "Deployment") {
			_, err = w.client.AppsV1().Deployments("edited").Patch(t.Context(), names.Orchestrator, types.MergePatchType, []byte(edit.patch), metav1.PatchOptions{})
		} else {
			_, err = w.client.CoreV1().ConfigMaps("edited").Patch(t.Context(), names.ImagesConfig, types.MergePatchType, []byte(edit.patch), metav1.PatchOptions{})
		}
		must(t, err)
		kept, gone := "r.test/team/jr2-sandbox-my-instance-default:0123456789ab-amd64", "r.test/team/jr2-sandbox-other-default:0123456789ab-amd64"
		store := &shelf{tags: []string{kept, gone}, of: map[string]string{kept: "my-instance", gone: "other"}}
		done, err := jr2.GC(t.Context(), jr2.GCOptions{Config: w.Config(), Context: contextName, Store: store})
		if err == nil || !strings.Contains(err.Error(), edit.object) || !strings.Contains(err.Error(), "converge it again") {
			t.Errorf("%s: %v, want the object and the way on", edit.patch, err)
		}
		if !slices.Equal(store.tags, []string{kept}) || done == nil || len(done.Removed) != 1 {
			t.Errorf("%s: %q are left, %+v", edit.patch, store.tags, done)
		}
	}
	_, err := w.client.AppsV1().Deployments("edited").Patch(t.Context(), names.Orchestrator, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"jr2.dev/replaced-images":null}}}`), metav1.PatchOptions{}) // nobody needs an old list
	must(t, err)
	must(t, w.up(t, dir, into("edited"), func(o *jr2.Options) { o.TakeFrom = []string{"jr2.test"} }).err) // the edit of data has an owner of its own
	if _, err := jr2.GC(t.Context(), jr2.GCOptions{Config: w.Config(), Context: contextName, Store: &shelf{}}); err != nil {
		t.Errorf("after the next up: %v", err)
	}
}
