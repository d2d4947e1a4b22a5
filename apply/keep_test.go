package apply_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// Field case F39: what a manifest tells the tool that it was written for, it tells this one: the object stays when it leaves the set, in the plan as in
// the run, is told with the reason, and stays in the record. The live object counts as well as the last manifest.
func TestAnObjectThatSaysToKeepItStays(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	marks := map[string]string{
		"argo-never":    "argocd.argoproj.io/sync-options: Prune=false",
		"argo-among":    "argocd.argoproj.io/sync-options: 'ServerSideApply=true, Prune=false'",
		"argo-confirm":  "argocd.argoproj.io/sync-options: Prune=confirm",
		"helm":          "helm.sh/resource-policy: keep",
		"helm-case":     "helm.sh/resource-policy: ' Keep'",
		"flux":          "kustomize.toolkit.fluxcd.io/prune: disabled",
		"flux-paused":   "kustomize.toolkit.fluxcd.io/reconcile: Disabled",
		"cli-utils":     "cli-utils.sigs.k8s.io/on-remove: keep",
		"detached":      "client.lifecycle.config.k8s.io/deletion: detach",
		"kapp":          "kapp.k14s.io/delete-strategy: orphan",
		"taken-off":     "helm.sh/resource-policy: keep",
		"not-a-word":    "argocd.argoproj.io/sync-options: Prune=true",
		"another-value": "helm.sh/resource-policy: delete",
	}
	docs := []string{conf("stays", "x"), conf("live", "x"), strings.Replace(conf("label", "x"), "namespace: NS", "namespace: NS, labels: {kustomize.toolkit.fluxcd.io/prune: disabled}", 1)}
	for name, mark := range marks {
		docs = append(docs, conf(name, "x", mark))
	}
	first := set(t, ns, join(docs...))
	mustApply(t, first, apply.Options{Prune: true})
	patch := func(name, annotations string) {
		t.Helper()
		if _, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":`+annotations+`}}`), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
	}
	patch("live", `{"helm.sh/resource-policy":"keep"}`)    // nobody but the live object says so
	patch("taken-off", `{"helm.sh/resource-policy":null}`) // nobody but the last manifest says so
	goes := map[string]bool{"not-a-word": true, "another-value": true}

	second := set(t, ns, conf("stays", "x"))
	for _, run := range []string{"first", "second"} {
		p, out := mustPlan(t, second, apply.Options{Prune: true}), mustApply(t, second, apply.Options{Prune: true})
		for _, o := range first.Objects {
			ref := apply.RefOf(o)
			step, _ := p.Step(ref)
			switch {
			case ref.Name == "stays" || goes[ref.Name] && run == "second":
			case goes[ref.Name]:
				if step.Intent != apply.WillPrune || out.Did(ref) != apply.Pruned {
					t.Errorf("%s run: %s: planned %q, was %q", run, ref.Name, step.Intent, out.Did(ref))
				}
			case step.Intent != apply.WillKeep || out.Did(ref) != apply.Kept || !strings.Contains(step.Why, "says to keep it"):
				t.Errorf("%s run: %s: planned %q (%s), was %q", run, ref.Name, step.Intent, step.Why, out.Did(ref))
			}
		}
		if out.Count(apply.Kept) != len(first.Objects)-3 {
			t.Errorf("%s run: %d kept of %d", run, out.Count(apply.Kept), len(first.Objects))
		}
	}
	for name := range marks {
		_, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if gone := apply.Classify(err) == apply.ClassNotFound; gone != goes[name] {
			t.Errorf("%s: gone %t, %v", name, gone, err)
		}
	}

	// Whoever takes the mark off the live object, once the record was written without it, has it pruned: Withdraw leaves it as well until then.
	out, err := apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{})
	if err != nil || out.Count(apply.Pruned) != 1 || out.Did(configMap(ns, "helm")) != apply.Kept {
		t.Errorf("withdrawn: %v, %+v", err, out.Objects)
	}
}

// An object that says to keep it is not deleted to be made again either, unless it says itself that it may be replaced.
func TestWhatSaysToKeepItIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	opts := apply.Options{Recreate: []string{"Job.batch"}}
	kept := func(image string) *apply.Set {
		return set(t, ns, job("once", image, "helm.sh/resource-policy: keep"))
	}
	mustApply(t, kept("registry.example/once:1"), opts)
	var fixed *apply.ImmutableError
	if _, err := apply.Apply(t.Context(), config(t), kept("registry.example/once:2"), opts); !errors.As(err, &fixed) {
		t.Errorf("got %v", err)
	}
	itself := set(t, ns, job("itself", "registry.example/once:1", "argocd.argoproj.io/sync-options: 'Prune=false,Replace=true'"))
	mustApply(t, itself, opts)
	again := set(t, ns, job("itself", "registry.example/once:2", "argocd.argoproj.io/sync-options: 'Prune=false,Replace=true'"))
	if out := mustApply(t, again, apply.Options{}); out.Count(apply.Recreated) != 1 {
		t.Errorf("%+v", out.Objects)
	}
}
