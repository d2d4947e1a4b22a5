package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// job is a Job of the set; annotations are those of its place in the order.
func job(name, image string, annotations ...string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: NS, annotations: {%s}}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 0
  template:
    spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: run, image: %q}]}`, name, strings.Join(annotations, ", "), image)
}

func conf(name, value string, annotations ...string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: NS, annotations: {%s}}
data: {value: %q}`, name, strings.Join(annotations, ", "), value)
}

func inWave(n int) string { return fmt.Sprintf("argocd.argoproj.io/sync-wave: %q", fmt.Sprint(n)) }
func hooked(phases string) string {
	return fmt.Sprintf("argocd.argoproj.io/hook: %q", phases)
}
func deleted(policies string) string {
	return fmt.Sprintf("argocd.argoproj.io/hook-delete-policy: %q", policies)
}

func join(docs ...string) string { return strings.Join(docs, "\n---\n") }

func jobRef(ns, name string) apply.Ref {
	return apply.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: ns, Name: name}
}

// A story is what an Apply told, in order.
type story struct {
	mu    sync.Mutex
	lines []string
}

func (s *story) tell(e apply.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case apply.WaveStarted:
		s.lines = append(s.lines, fmt.Sprintf("%s %d", e.Phase, e.Wave))
	case apply.HookStarted:
		s.lines = append(s.lines, "start "+e.Ref.Name)
	case apply.Applied:
		s.lines = append(s.lines, fmt.Sprintf("%s %s", e.Action, e.Ref.Name))
	}
}

// Waves and phases come in their order, hooks run once for a content, and again with the next.
func TestWavesAndHooksInOrder(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	release := func(n int) *apply.Set {
		return set(t, ns, join(
			job("check", "registry.example/check:1", hooked("PreSync"), deleted("HookSucceeded")),
			conf("config", fmt.Sprint(n), inWave(-2)),
			job("migrate", fmt.Sprintf("registry.example/api:%d", n), hooked("Sync"), inWave(0), deleted("BeforeHookCreation")),
			conf("api", "x", inWave(1)),
			job("greet", "registry.example/greet:1", hooked("PostSync")),
			job("cry", "registry.example/cry:1", hooked("SyncFail")),
			conf("not", "x", hooked("Skip")),
		))
	}
	want := func(n string) []string {
		return strings.Split(strings.ReplaceAll("PreSync 0,start check,ran check,Sync -2,N config,Sync 0,start migrate,ran migrate,Sync 1,A api,PostSync 0,start greet,ran greet", "N", n), ",")
	}
	var first story
	out := mustApply(t, release(1), apply.Options{Prune: true, Events: first.tell})
	if w := strings.ReplaceAll(strings.Join(want("created"), ","), "A api", "created api"); strings.Join(first.lines, ",") != w {
		t.Errorf("got  %s\nwant %s", strings.Join(first.lines, ","), w)
	}
	if out.Did(jobRef(ns, "migrate")) != apply.Ran || out.Count(apply.Ran) != 3 {
		t.Errorf("got %+v", out.Objects)
	}
	jobs := typed(t).BatchV1().Jobs(ns)
	migrated, err := jobs.Get(t.Context(), "migrate", metav1.GetOptions{})
	if err != nil || migrated.Spec.TTLSecondsAfterFinished != nil {
		t.Fatalf("the Job stays until it is made again: %v", err)
	}
	if _, err := jobs.Get(t.Context(), "cry", metav1.GetOptions{}); apply.Classify(err) != apply.ClassNotFound {
		t.Errorf("the hook of a failure: %v", err)
	}

	p := mustPlan(t, release(1), apply.Options{Prune: true})
	if out := mustApply(t, release(1), apply.Options{Prune: true}); out.Changed() != 0 || p.Changes() != 0 {
		t.Errorf("an equal set: %+v\n%s", out.Objects, p)
	}

	p = mustPlan(t, release(2), apply.Options{Prune: true})
	if p.Count(apply.WillRun) != 3 || p.Count(apply.WillConfigure) != 1 {
		t.Errorf("got\n%s", p)
	}
	var second story
	if _, err := p.Apply(t.Context(), config(t)); err != nil {
		t.Fatal(err)
	}
	mustApply(t, release(3), apply.Options{Prune: true, Events: second.tell})
	if w := strings.ReplaceAll(strings.Join(want("configured"), ","), "A api", "unchanged api"); strings.Join(second.lines, ",") != w {
		t.Errorf("got  %s\nwant %s", strings.Join(second.lines, ","), w)
	}
	again, err := jobs.Get(t.Context(), "migrate", metav1.GetOptions{})
	if err != nil || again.UID == migrated.UID || again.Spec.Template.Spec.Containers[0].Image != "registry.example/api:3" {
		t.Errorf("the second release's migration: %+v, %v", again, err)
	}
}

// A hook that fails stops what comes after it, runs those of SyncFail, and runs again with the next Apply.
func TestAFailedHookStopsTheWavesAfterIt(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	release := func(image string) *apply.Set {
		return set(t, ns, join(
			job("migrate", image, hooked("Sync"), inWave(0), deleted("HookFailed")),
			conf("api", "x", inWave(1)),
			job("cry", "registry.example/cry:1", hooked("SyncFail"))))
	}
	opts := apply.Options{Prune: true, Ready: apply.WaitOptions{Timeout: time.Minute}}
	out, err := apply.Apply(t.Context(), config(t), release(devcluster.TroubleImage(devcluster.Failed)), opts)
	var hook *apply.HookError
	if !errors.As(err, &hook) || hook.Ref != jobRef(ns, "migrate") || hook.Phase != apply.Sync {
		t.Fatalf("got %v", err)
	}
	if out.Did(configMap(ns, "api")) != "" || out.Did(jobRef(ns, "cry")) != apply.Ran {
		t.Errorf("got %+v", out.Objects)
	}
	out = mustApply(t, release("registry.example/api:2"), opts)
	if out.Did(configMap(ns, "api")) != apply.Created || out.Did(jobRef(ns, "migrate")) != apply.Ran || out.Did(jobRef(ns, "cry")) != "" {
		t.Errorf("got %+v", out.Objects)
	}
}

// What a cut-off run left under a hook's name is joined when it is of the same release, and else deleted and waited for. Field case F24.
func TestF24LeftoversOfHooks(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	release := func(n int) *apply.Set {
		return set(t, ns, join(conf("config", fmt.Sprint(n)), job("migrate", "registry.example/api:1", hooked("Sync"), inWave(1))))
	}
	mustApply(t, release(1), apply.Options{})
	jobs := typed(t).BatchV1().Jobs(ns)
	done, err := jobs.Get(t.Context(), "migrate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("joined", func(t *testing.T) {
		// The inventory forgets that the hook succeeded, as if the run had ended before that was written.
		if err := apply.ForgetHooks(t.Context(), typed(t), release(1)); err != nil {
			t.Fatal(err)
		}
		joined := false
		out := mustApply(t, release(1), apply.Options{Events: func(e apply.Event) {
			if s, ok := e.(apply.HookStarted); ok {
				joined = s.Joined
			}
		}})
		now, err := jobs.Get(t.Context(), "migrate", metav1.GetOptions{})
		if err != nil || now.UID != done.UID || !joined || out.Did(jobRef(ns, "migrate")) != apply.Ran {
			t.Errorf("joined %t, %+v, %v", joined, out.Objects, err)
		}
	})
	t.Run("being deleted", func(t *testing.T) {
		if err := apply.ForgetHooks(t.Context(), typed(t), release(1)); err != nil {
			t.Fatal(err)
		}
		hold(t, ns, "migrate")
		released := make(chan struct{})
		out := mustApply(t, release(1), apply.Options{Events: func(e apply.Event) {
			if w, ok := e.(apply.Waiting); ok && strings.Contains(w.Reason, "deleted") {
				select {
				case <-released:
				default:
					close(released)
					letGo(t, ns, "migrate")
				}
			}
		}})
		now, err := jobs.Get(t.Context(), "migrate", metav1.GetOptions{})
		if err != nil || now.UID == done.UID || out.Did(jobRef(ns, "migrate")) != apply.Ran {
			t.Errorf("%+v, %v", out.Objects, err)
		}
	})
	t.Run("of another release", func(t *testing.T) {
		before, err := jobs.Get(t.Context(), "migrate", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		mustApply(t, release(2), apply.Options{})
		if now, err := jobs.Get(t.Context(), "migrate", metav1.GetOptions{}); err != nil || now.UID == before.UID {
			t.Errorf("%v", err)
		}
	})
	t.Run("of nobody", func(t *testing.T) {
		other := newNamespace(t, nil)
		mustApply(t, set(t, other, job("migrate", "registry.example/stranger:1")), apply.Options{Shared: true})
		_, err := apply.Apply(t.Context(), config(t), set(t, other, job("migrate", "registry.example/api:1", hooked("Sync"))), apply.Options{})
		var hook *apply.HookError
		if !errors.As(err, &hook) || apply.Classify(err) != apply.ClassAlreadyExists {
			t.Errorf("got %v", err)
		}
	})
}

// hold deletes a Job in a way that leaves it there until letGo.
func hold(t *testing.T, ns, name string) {
	t.Helper()
	finalize(t, ns, name, `{"metadata":{"finalizers":["example.com/held"]}}`)
	background := metav1.DeletePropagationBackground
	if err := typed(t).BatchV1().Jobs(ns).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
}

func finalize(t *testing.T, ns, name, patch string) {
	t.Helper()
	if _, err := typed(t).BatchV1().Jobs(ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

func letGo(t *testing.T, ns, name string) { finalize(t, ns, name, `{"metadata":{"finalizers":null}}`) }

// Annotations that nobody understands are refused; Argo CD takes them for its defaults.
func TestPositionsThatAreNoneAreRefused(t *testing.T) {
	_, err := apply.NewSet("app", "demo", objects(t, "demo", join(
		conf("a", "x", `argocd.argoproj.io/sync-wave: "one"`),
		conf("b", "x", hooked("Presync")),
		conf("c", "x", hooked("Sync"), deleted("Never")),
		strings.Replace(conf("d", "x", hooked("Sync")), "kind: ConfigMap", "kind: PersistentVolumeClaim", 1),
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com, annotations: {"+hooked("PreSync")+"}}",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: others.example.com, annotations: {argocd.argoproj.io/sync-wave: first}}",
		conf("e", "x", `argocd.argoproj.io/sync-wave: "99999999999999999999"`),
		"apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-, annotations: {"+hooked("PreSync")+"}}",
	))...)
	var bad *apply.SetError
	if !errors.As(err, &bad) || len(bad.Problems) != 8 {
		t.Fatalf("got %v", err)
	}
	for i, text := range []string{`sync-wave: "one" is no whole number`, `hook: "Presync" is none of`, `hook-delete-policy: "Never" is none of`, "loses data",
		"deleting a CustomResourceDefinition loses data", `sync-wave: "first" is no`, `"99999999999999999999" is no`, "metadata.generateName: object 8 needs a name"} {
		if !slices.ContainsFunc(bad.Problems, func(p apply.Problem) bool { return strings.Contains(p.String(), text) }) {
			t.Errorf("%d: %q is missing in\n%v", i, text, err)
		}
	}
}

// A Secret that is a hook is not shown to the caller's readers, also when it is joined.
func TestReadersSeeNoSecretOfAHook(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: words, namespace: NS, annotations: {"+hooked("Sync")+"}}\nstringData: {word: hush}")
	opts := apply.Options{Ready: apply.WaitOptions{Readers: []apply.Reader{func(u *unstructured.Unstructured) (apply.Status, bool) {
		t.Errorf("it was shown %s %s", u.GetKind(), u.GetName())
		return apply.Status{}, false
	}}}}
	mustApply(t, s, opts)
	if err := apply.ForgetHooks(t.Context(), typed(t), s); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, opts)
}

// A hook is deleted to be made anew. What was no hook before, and holds data or says to keep it, is not.
func TestWhatBecomesAHookIsNotDeletedWithItsData(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	secret := func(annotations string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: words, namespace: NS, annotations: {" + annotations + "}}\nstringData: {word: hush}"
	}
	mustApply(t, set(t, ns, join(secret(""), conf("kept", "x"))), apply.Options{})
	if _, err := typed(t).CoreV1().Secrets(ns).Patch(t.Context(), "words", types.MergePatchType, []byte(`{"stringData":{"theirs":"x"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	if _, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{secret(hooked("PreSync")), conf("kept", "x", hooked("PreSync"))} {
		s := set(t, ns, doc)
		p := mustPlan(t, s, apply.Options{})
		_, err := apply.Apply(t.Context(), config(t), s, apply.Options{})
		if hook := (*apply.HookError)(nil); !errors.As(err, &hook) || p.Err() == nil {
			t.Errorf("got %v, planned %v", err, p)
		}
	}
	got, err := typed(t).CoreV1().Secrets(ns).Get(t.Context(), "words", metav1.GetOptions{})
	if err != nil || got.Data["theirs"] == nil {
		t.Errorf("a stranger's value is gone: %v", err)
	}
}

// A manifest that was read out of a cluster may carry what this engine wrote onto a hook. That makes no hook of it.
func TestAManifestThatWasAHookOnceIsNone(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	exported := func(image string) *apply.Set {
		return set(t, ns, job("once", image, `jr2.dev/release: "1 Sync ABCDEFGH"`))
	}
	mustApply(t, exported("registry.example/api:1"), apply.Options{})
	_, err := apply.Apply(t.Context(), config(t), exported("registry.example/api:2"), apply.Options{})
	if immutable := (*apply.ImmutableError)(nil); !errors.As(err, &immutable) {
		t.Errorf("got %v", err)
	}
}
