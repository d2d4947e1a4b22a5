package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

func liveJob(t *testing.T, ns, name string) *batchv1.Job {
	t.Helper()
	j, err := typed(t).BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func imageOf(j *batchv1.Job) string { return j.Spec.Template.Spec.Containers[0].Image }

// What an earlier release left is not taken for this release's, also where the count of releases began anew.
func TestAHookOfAnotherLife(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(t *testing.T, ns string){
		"unhooked": func(t *testing.T, ns string) { mustApply(t, set(t, ns, conf("api", "x")), apply.Options{}) },
		"lost": func(t *testing.T, ns string) {
			if err := typed(t).CoreV1().ConfigMaps(ns).Delete(t.Context(), apply.InventoryName("app"), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			release := func(n int) *apply.Set {
				return set(t, ns, join(job("migrate", fmt.Sprint("registry.example/api:", n), hooked("Sync")), conf("api", "x")))
			}
			mustApply(t, release(1), apply.Options{})
			forget(t, ns)
			if out := mustApply(t, release(2), apply.Options{}); out.Did(jobRef(ns, "migrate")) != apply.Ran || imageOf(liveJob(t, ns, "migrate")) != "registry.example/api:2" {
				t.Errorf("%s ran: %+v", imageOf(liveJob(t, ns, "migrate")), out.Objects)
			}
		})
	}
}

// A hook may become an ordinary object: its fields become the set's, and what can't be changed of it is made again. And back.
func TestAHookMayBecomeAnOrdinaryObjectAndBack(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	lasting := func(n int, annotations ...string) string {
		return strings.Replace(job("once", fmt.Sprint("registry.example/api:", n), annotations...), "  ttlSecondsAfterFinished: 0\n", "", 1)
	}
	hooks := set(t, ns, join(conf("settings", "1", hooked("PreSync")), account("runner", hooked("PreSync")), lasting(1, hooked("Sync"))))
	ordinary := set(t, ns, join(conf("settings", "2"), account("runner"), lasting(2)))
	mustApply(t, hooks, apply.Options{Prune: true})
	p := mustPlan(t, ordinary, apply.Options{Prune: true})
	if p.Count(apply.WillConfigure) != 2 || p.Count(apply.WillRecreate) != 1 {
		t.Errorf("%s", p)
	}
	out, err := p.Apply(t.Context(), config(t))
	if err != nil || out.Did(configMap(ns, "settings")) != apply.Configured || out.Did(jobRef(ns, "once")) != apply.Recreated {
		t.Fatalf("%v, %+v", err, out.Objects)
	}
	m, err := typed(t).CoreV1().ConfigMaps(ns).Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil || m.Data["value"] != "2" || len(m.Annotations) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if again := mustApply(t, ordinary, apply.Options{Prune: true}); again.Changed() != 0 {
		t.Errorf("%+v", again.Objects)
	}
	if out := mustApply(t, hooks, apply.Options{Prune: true}); out.Count(apply.Ran) != 3 || imageOf(liveJob(t, ns, "once")) != "registry.example/api:1" {
		t.Errorf("%+v", out.Objects)
	}
}

// A shared set has no inventory to note what ran, so hooks of it are refused by name, before any request.
func TestHooksOfASharedSetAreRefused(t *testing.T) {
	s := set(t, "demo", join(job("migrate", "registry.example/api:1", hooked("Sync")), conf("cry", "x", hooked("SyncFail")), conf("api", "x")))
	_, err := apply.Apply(t.Context(), config(t), s, apply.Options{Shared: true})
	_, planErr := apply.MakePlan(t.Context(), config(t), s, apply.Options{Shared: true})
	var bad *apply.SetError
	if !errors.As(err, &bad) || len(bad.Problems) != 2 || !errors.As(planErr, &bad) {
		t.Errorf("got %v, %v", err, planErr)
	}
}

// A dry run and a plan show hooks to the server, those too that take the place of an older one, and a hook is told once however many
// phases it has.
func TestHooksAreShownToTheServer(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	good := set(t, ns, conf("settings", "x", hooked("PreSync,Sync,PostSync")))
	bad := set(t, ns, strings.Replace(conf("settings", "x", hooked("PreSync,Sync,PostSync")), "\ndata:", "\nwrong: 1\ndata:", 1))
	refused := func(t *testing.T) {
		t.Helper()
		_, err := apply.Apply(t.Context(), config(t), bad, apply.Options{DryRun: true})
		var hook *apply.HookError
		if !errors.As(err, &hook) || !strings.Contains(err.Error(), "wrong") {
			t.Errorf("a dry run: %v", err)
		}
		if p := mustPlan(t, bad, apply.Options{}); p.Count(apply.WillFail) != 1 {
			t.Errorf("%s", p)
		}
	}
	refused(t)
	mustApply(t, good, apply.Options{})
	refused(t)
	var told story
	if out := mustApply(t, good, apply.Options{Events: told.tell}); out.Changed() != 0 || strings.Count(strings.Join(told.lines, ","), "settings") != 1 {
		t.Errorf("%+v, told: %v", out.Objects, told.lines)
	}
	if out := mustApply(t, good, apply.Options{DryRun: true}); out.Changed() != 0 {
		t.Errorf("%+v", out.Objects)
	}
}

// What a run that was cut off made again is the set's, though the inventory knows it by the UID of its predecessor.
func TestWhatWasMadeAgainByACutOffRunIsPruned(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, join(conf("settings", "x", hooked("PreSync")), conf("plain", "x"), conf("api", "x"))), apply.Options{})
	maps := typed(t).CoreV1().ConfigMaps(ns)
	for _, name := range []string{"settings", "plain"} {
		was, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			err = maps.Delete(t.Context(), name, metav1.DeleteOptions{})
		}
		if err == nil {
			_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: was.Annotations}}, metav1.CreateOptions{FieldManager: apply.DefaultFieldManager})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out := mustApply(t, set(t, ns, conf("api", "x")), apply.Options{Prune: true})
	if out.Did(configMap(ns, "settings")) != apply.Pruned || out.Did(configMap(ns, "plain")) != apply.Pruned {
		t.Errorf("%+v", out.Objects)
	}
}

// What has a hook's name and is being deleted is waited for, whatever its kind and whoever's it was. Field case F24.
func TestF24WhatIsBeingDeletedIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, hook string }{
		"own map":     {conf("left", "1", hooked("PreSync")), conf("left", "2", hooked("PreSync"))},
		"own account": {account("left", hooked("PreSync")), account("left", hooked("PreSync"), inWave(1))},
		"a stranger":  {strings.Replace(conf("left", "1"), "annotations: {}", "labels: {of: nobody}", 1), conf("left", "2", hooked("PreSync"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			mustApply(t, set(t, ns, tt.before), apply.Options{Shared: name == "a stranger"})
			patch := func(finalizers string) {
				raw := []byte(`{"metadata":{"finalizers":` + finalizers + `}}`)
				_, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), "left", types.MergePatchType, raw, metav1.PatchOptions{})
				if name == "own account" {
					_, err = typed(t).CoreV1().ServiceAccounts(ns).Patch(t.Context(), "left", types.MergePatchType, raw, metav1.PatchOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
			patch(`["example.com/held"]`)
			remove := typed(t).CoreV1().ConfigMaps(ns).Delete
			if name == "own account" {
				remove = typed(t).CoreV1().ServiceAccounts(ns).Delete
			}
			if err := remove(t.Context(), "left", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := apply.Apply(t.Context(), config(t), set(t, ns, tt.hook), apply.Options{Retry: apply.Retry{Limit: 200 * time.Millisecond}})
			if apply.Classify(err) != apply.ClassBeingDeleted || !strings.Contains(err.Error(), "held by example.com/held") {
				t.Errorf("held: %v", err)
			}
			var once sync.Once
			out := mustApply(t, set(t, ns, tt.hook), apply.Options{Events: func(e apply.Event) {
				if w, ok := e.(apply.Waiting); ok && strings.Contains(w.Reason, "deleted") {
					once.Do(func() { patch("null") })
				}
			}})
			if out.Count(apply.Ran) != 1 {
				t.Errorf("%+v", out.Objects)
			}
		})
	}
}
