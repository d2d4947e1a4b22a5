package apply_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

const takenOver = `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: NS-taken}
value: 7`

// Two sets that take an object from each other within a second, by the same field manager, leave all but its mark as it was: each of them writes
// the mark all the same, and says so.
func TestAnObjectIsTakenOverAgainWithinASecond(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	classes := typed(t).SchedulingV1().PriorityClasses()
	t.Cleanup(func() { _ = classes.Delete(t.Context(), ns+"-taken", metav1.DeleteOptions{}) })
	mustApply(t, mustSet(t, "a", ns, takenOver), apply.Options{})
	for n, name := range []string{"b", "a", "b", "a", "b", "a"} {
		opts := apply.Options{AdoptFrom: []string{ns + "/a", ns + "/b"}}
		s := mustSet(t, name, ns, takenOver)
		plan := mustPlan(t, s, opts)
		out := mustApply(t, s, opts)
		class, err := classes.Get(t.Context(), ns+"-taken", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if owner := class.Annotations[apply.SetAnnotation]; owner != s.ID() || out.Changed() != 1 || plan.Count(apply.WillAdopt) != 1 {
			t.Errorf("%d: it is of %s, not of %s; %s%+v", n, owner, s.ID(), plan, out.Objects)
		}
	}
}

// A copy of another set's object carries that set's mark, and is nobody's: to take over that set's objects does not take the copy.
func TestACopyOfAnotherSetsObjectIsNotTakenOverFromIt(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	conf := func(name string) string {
		return strings.Replace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: NS}\ndata: {a: \"1\"}", "NAME", name, 1)
	}
	mustApply(t, mustSet(t, "a", ns, conf("one")), apply.Options{})
	maps := typed(t).CoreV1().ConfigMaps(ns)
	one, err := maps.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one.ObjectMeta = metav1.ObjectMeta{Name: "two", Annotations: one.Annotations}
	if _, err := maps.Create(t.Context(), one, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	s, opts := mustSet(t, "b", ns, conf("one")+"\n---\n"+conf("two")), apply.Options{AdoptFrom: []string{ns + "/a"}}
	var unowned *apply.UnownedError
	if err := mustPlan(t, s, opts).Err(); !errors.As(err, &unowned) || unowned.Ref.Name != "two" {
		t.Errorf("planned: %v", err)
	}
	if out, err := apply.Apply(t.Context(), config(t), s, opts); !errors.As(err, &unowned) || out.Changed() != 0 {
		t.Errorf("%+v, %v", out.Objects, err)
	}
	opts.Adopt, opts.Conflicts.TakeFrom = true, []string{"kubectl-create"}
	if out := mustApply(t, s, opts); out.Count(apply.Configured) != 2 {
		t.Errorf("with both: %+v", out.Objects)
	}
}

// Another set that takes an object over while it is applied is told, too: "created" would say that it is ours.
func TestAnObjectThatAnotherSetTakesMeanwhileIsTold(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	ours, theirs := mapsSet(t, ns, "one"), mustSet(t, "other", ns, conf("one", "theirs"))
	_, err := apply.Apply(t.Context(), config(t), ours, apply.Options{Events: func(e apply.Event) {
		if a, ok := e.(apply.Applied); ok && a.Ref == configMap(ns, "one") {
			mustApply(t, theirs, apply.Options{AdoptFrom: []string{ns + "/app"}})
		}
	}})
	if taken := (*apply.TakenAwayError)(nil); !errors.As(err, &taken) || !strings.Contains(taken.Why, ns+"/other") {
		t.Errorf("got %v", err)
	}
}
