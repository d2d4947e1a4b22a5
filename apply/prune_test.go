package apply_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

func configMap(ns, name string) apply.Ref {
	return apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: ns, Name: name}
}

func mapsSet(t *testing.T, ns string, names ...string) *apply.Set {
	t.Helper()
	s, err := apply.NewSet("app", ns)
	for _, name := range names {
		next, nextErr := apply.NewSet("app", ns, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}})
		err = errors.Join(err, nextErr)
		s.Objects = append(s.Objects, next.Objects...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPruneDeletesOnlyWhatIsOurs(t *testing.T) {
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	mustApply(t, mapsSet(t, ns, "stays", "goes", "recreated", "given"), apply.Options{})

	// One of ours is made anew by a person, one is given to another set, one was never ours.
	if err := maps.Delete(t.Context(), "recreated", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"recreated", "foreign"} {
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := maps.Patch(t.Context(), "given", types.MergePatchType, []byte(`{"metadata":{"annotations":{"jr2.dev/set":"other/app"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	without := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{})
	if without.Changed() != 0 {
		t.Errorf("without Prune: %+v", without.Objects)
	}
	dry := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true, DryRun: true})
	out := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	for _, o := range []*apply.Outcome{dry, out} {
		if o.Did(configMap(ns, "goes")) != apply.Pruned || o.Did(configMap(ns, "recreated")) != apply.Kept || o.Did(configMap(ns, "given")) != apply.Kept || o.Changed() != 1 {
			t.Errorf("got %+v", o.Objects)
		}
	}
	for name, there := range map[string]bool{"stays": true, "goes": false, "recreated": true, "given": true, "foreign": true} {
		_, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if there && err != nil || !there && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true}); len(again.Objects) != 1 || again.Changed() != 0 {
		t.Errorf("the next run: %+v", again.Objects)
	}
}

func TestPruneKeepsDataUnlessItIsNamed(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, stack), apply.Options{})
	claim := apply.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: ns, Name: "state"}
	secret := apply.Ref{Version: "v1", Kind: "Secret", Namespace: ns, Name: "words"}
	out := mustApply(t, mapsSet(t, ns, "conf2"), apply.Options{Prune: true})
	if out.Did(claim) != apply.Kept || out.Did(secret) != apply.Kept || out.Count(apply.Pruned) != 6 {
		t.Errorf("got %+v", out.Objects)
	}
	out = mustApply(t, mapsSet(t, ns, "conf2"), apply.Options{Prune: true, PruneData: []apply.Ref{secret}})
	if out.Did(claim) != apply.Kept || out.Did(secret) != apply.Pruned {
		t.Errorf("with the Secret named: %+v", out.Objects)
	}
}

func TestPruneReportsFinalizersAndGoesOn(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	mustApply(t, mapsSet(t, ns, "a", "held", "z"), apply.Options{})
	finalizers := func(list string) {
		if _, err := maps.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`["example.com/hold"]`)
	out := mustApply(t, mapsSet(t, ns, "a"), apply.Options{Prune: true})
	if out.Did(configMap(ns, "held")) != apply.Terminating || out.Did(configMap(ns, "z")) != apply.Pruned {
		t.Errorf("got %+v", out.Objects)
	}
	if again := mustApply(t, mapsSet(t, ns, "a"), apply.Options{Prune: true}); again.Changed() != 0 || again.Did(configMap(ns, "held")) != apply.Terminating {
		t.Errorf("the next run: %+v", again.Objects)
	}

	// Asked for again while it goes, it is waited for and made anew; held too long, the error says by what.
	_, err := apply.Apply(t.Context(), config(t), mapsSet(t, ns, "a", "held"), apply.Options{Retry: apply.Retry{Limit: 300 * time.Millisecond}})
	if apply.Classify(err) != apply.ClassBeingDeleted || !strings.Contains(err.Error(), "example.com/hold") {
		t.Fatalf("got %v", err)
	}
	waits := make(chan struct{}, 1)
	go func() {
		<-waits
		finalizers("null")
	}()
	out = mustApply(t, mapsSet(t, ns, "a", "held"), apply.Options{Events: func(e apply.Event) {
		if _, ok := e.(apply.Waiting); ok {
			waits <- struct{}{}
		}
	}})
	if out.Did(configMap(ns, "held")) != apply.Created {
		t.Errorf("got %+v", out.Objects)
	}
}

func TestRemove(t *testing.T) {
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "a", "b"), apply.Options{})
	got, err := apply.Remove(t.Context(), config(t), apply.RemoveOptions{},
		configMap(ns, "a"), configMap(ns, "absent"), apply.Ref{Group: "nowhere.example.com", Version: "v1", Kind: "Thing", Namespace: ns, Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Action != apply.Pruned || got[1].Action != apply.Absent || got[2].Action != apply.Absent {
		t.Errorf("got %+v", got)
	}
	got, err = apply.Remove(t.Context(), config(t), apply.RemoveOptions{Owner: "jr2.dev/instance=hold"}, configMap(ns, "b"))
	if err != nil || got[0].Action != apply.Kept {
		t.Errorf("without the label: %+v, %v", got, err)
	}
}
