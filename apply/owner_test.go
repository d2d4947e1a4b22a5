package apply_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

func TestTwoSetsDoNotTakeEachOthersObjects(t *testing.T) {
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "a"), apply.Options{})
	other := mapsSet(t, ns, "a", "b")
	other.Name = "other"
	out, err := apply.Apply(t.Context(), config(t), other, apply.Options{})
	var owned *apply.OwnedError
	if !errors.As(err, &owned) || owned.Owner != ns+"/app" || len(out.Objects) != 0 {
		t.Fatalf("got %v, %+v", err, out.Objects)
	}
	mustApply(t, other, apply.Options{Adopt: true})
	// The first owner stops rendering it, and does not delete it.
	out = mustApply(t, mapsSet(t, ns), apply.Options{Prune: true})
	if out.Did(configMap(ns, "a")) != apply.Kept || out.Changed() != 0 {
		t.Errorf("got %+v", out.Objects)
	}
}

// A change by another manager is a conflict that names it and the field; it is taken over only from managers that are listed.
func TestConflicts(t *testing.T) {
	ns := newNamespace(t, nil)
	s := set(t, ns, stack)
	mustApply(t, s, apply.Options{})
	deployments := typed(t).AppsV1().Deployments(ns)
	_, err := deployments.Patch(t.Context(), "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example/web:hand"}]}}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []apply.Options{{}, {Conflicts: apply.Conflicts{TakeFrom: []string{"helm"}}}} {
		_, err = apply.Apply(t.Context(), config(t), s, opts)
		var conflict *apply.ConflictError
		want := apply.Conflict{Manager: "kubectl-edit", Field: `.spec.template.spec.containers[name="web"].image`}
		if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0] != want || apply.Classify(err) != apply.ClassConflict {
			t.Fatalf("got %v", err)
		}
	}
	out := mustApply(t, s, apply.Options{Conflicts: apply.Conflicts{TakeFrom: []string{"kubectl-edit"}}})
	if out.Changed() != 1 {
		t.Errorf("got %+v", out.Objects)
	}
	d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || d.Spec.Template.Spec.Containers[0].Image != "registry.example/web:1" {
		t.Errorf("the image is not ours again: %v", err)
	}
}
