package apply_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// Pods that are being deleted say nothing about the rollout; a container that the layer names and a pod lacks does.
func TestVerifyLooksAtLivePodsOnly(t *testing.T) {
	ns := newNamespace(t, nil)
	pods := typed(t).CoreV1().Pods(ns)
	// The account named default comes a moment after its namespace.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if _, err := typed(t).CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, image := range map[string]string{"old": "registry.example/web:1", "new": "registry.example/web:2"} {
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}, Finalizers: []string{"example.com/hold"}},
			Spec: corev1.PodSpec{ServiceAccountName: "web", AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{
				{Name: "web", Image: image}, {Name: "side", Image: "registry.example/side:1"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer pods.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
	layer := apply.Layer{Name: "web", Namespace: ns, Selector: "app=web", Container: "web", Image: "registry.example/web:2"}
	var stale *apply.StaleImageError
	if _, err := apply.Verify(t.Context(), typed(t), layer); !errors.As(err, &stale) || len(stale.Pods) != 1 || stale.Pods[0] != "old" {
		t.Errorf("both live: %v", err)
	}
	if err := pods.Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := apply.Verify(t.Context(), typed(t), layer); err != nil || got.Pods != 1 {
		t.Errorf("the old one is going: %+v, %v", got, err)
	}
	layer.Container = ""
	if _, err := apply.Verify(t.Context(), typed(t), layer); !errors.As(err, &stale) || len(stale.Images) != 1 || stale.Images[0] != "registry.example/side:1" {
		t.Errorf("all containers: %v", err)
	}
	layer.Container = "agent"
	if _, err := apply.Verify(t.Context(), typed(t), layer); !errors.As(err, &stale) || len(stale.Images) != 0 {
		t.Errorf("a container that no pod has: %v", err)
	}
}

// Objects that several sets share carry no mark, are noted in no inventory and are pruned by nobody.
func TestSharedObjectsBelongToNobody(t *testing.T) {
	one, two := newNamespace(t, nil), newNamespace(t, nil)
	doc := "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " + one + "}\nvalue: 7"
	for i, ns := range []string{one, two, one} {
		out := mustApply(t, set(t, ns, doc), apply.Options{Shared: true, Prune: true})
		if want := map[bool]int{true: 1, false: 0}[i == 0]; out.Changed() != want {
			t.Errorf("run %d: %+v", i+1, out.Objects)
		}
	}
	mustApply(t, mapsSet(t, one, "a"), apply.Options{Prune: true})
	if _, err := typed(t).SchedulingV1().PriorityClasses().Get(t.Context(), one, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// The lock of a process that is known to have ended is not waited for.
func TestLockOfAHolderThatIsKnownToBeGone(t *testing.T) {
	ns := newNamespace(t, nil)
	_, stop, err := apply.Lock(t.Context(), typed(t), ns, "l", "pid 1", apply.LockOptions{Duration: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := apply.Lock(t.Context(), typed(t), ns, "l", "pid 2", apply.LockOptions{Gone: func(who string) bool { return who == "pid 1" }})
	if err != nil {
		t.Fatal(err)
	}
	stop() // does not take away what is not its own any more
	_, _, err = apply.Lock(t.Context(), typed(t), ns, "l", "pid 3", apply.LockOptions{Fail: true})
	var locked *apply.LockedError
	if !errors.As(err, &locked) || locked.Holder != "pid 2" {
		t.Errorf("got %v", err)
	}
	release()
}
