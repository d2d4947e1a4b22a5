package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

func account(name string, annotations ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: NS, annotations: {%s}}", name, strings.Join(annotations, ", "))
}

// Hooks that go when they succeeded may be what others need, in their wave or in a later phase: they go when all succeeded. What has
// their names afterwards is somebody else's.
func TestHooksThatSucceededGoWhenAllDid(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	withAccount := func(name string, annotations ...string) string {
		return strings.Replace(job(name, "registry.example/api:1", annotations...), "spec: {restart", "spec: {serviceAccountName: runner, restart", 1)
	}
	s := set(t, ns, join(
		account("runner", hooked("PreSync"), inWave(-1), deleted("HookSucceeded")),
		conf("settings", "x", hooked("PreSync"), deleted("HookSucceeded,HookFailed")),
		withAccount("migrate", hooked("PreSync"), deleted("HookSucceeded")),
		conf("api", "x"),
		withAccount("greet", hooked("PostSync"), deleted("HookSucceeded")),
	))
	short := apply.Options{Prune: true, Ready: apply.WaitOptions{Timeout: 20 * time.Second, Grace: time.Second}}
	if out := mustApply(t, s, short); out.Count(apply.Ran) != 4 {
		t.Fatalf("%+v", out.Objects)
	}
	left := func() (names []string) {
		t.Helper()
		maps, err := typed(t).CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		jobs, jobErr := typed(t).BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
		accounts, accountErr := typed(t).CoreV1().ServiceAccounts(ns).List(t.Context(), metav1.ListOptions{})
		if err := errors.Join(err, jobErr, accountErr); err != nil {
			t.Fatal(err)
		}
		for _, m := range maps.Items {
			names = append(names, m.Name)
		}
		for _, j := range jobs.Items {
			if j.DeletionTimestamp == nil { // the garbage collector ends a deletion in the foreground
				names = append(names, j.Name)
			}
		}
		for _, a := range accounts.Items {
			names = append(names, a.Name)
		}
		return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "kube-") || n == "default" })
	}
	if got := left(); !slices.Equal(got, []string{"api", apply.InventoryName("app")}) {
		t.Errorf("left: %v", got)
	}
	if _, err := typed(t).CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if out := mustApply(t, s, short); out.Changed() != 0 {
		t.Errorf("%+v", out.Objects)
	}
	if got := left(); !slices.Contains(got, "settings") {
		t.Errorf("what a person made is gone: %v", got)
	}
}

// A wave ends when a hook of it failed, whatever its objects wait for, and the hook's delete policy is followed; those that still run go on.
func TestAWaveEndsWhenAHookFailed(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	nowhere := func(text string) string {
		return strings.Replace(text, "containers:", "nodeSelector: {no: where}, containers:", 1)
	}
	s := set(t, ns, join(
		nowhere(onePod),
		nowhere(job("slow", "registry.example/api:1", hooked("Sync"), deleted("HookFailed"))),
		job("migrate", devcluster.TroubleImage(devcluster.Failed), hooked("Sync"), deleted("HookFailed")),
		conf("later", "1", inWave(1))))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := apply.Apply(ctx, config(t), s, apply.Options{})
	var hook *apply.HookError
	if ctx.Err() != nil || !errors.As(err, &hook) || hook.Ref != jobRef(ns, "migrate") || !strings.HasPrefix(err.Error(), "the Sync hook Job.batch "+ns+"/migrate did not succeed\n") {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "Deployment.apps "+ns+"/web is not ready yet") || !strings.Contains(err.Error(), "the Sync hook Job.batch "+ns+"/slow is not ready yet") {
		t.Errorf("what was only waited for is told too: %v", err)
	}
	for name, there := range map[string]bool{"slow": true, "migrate": false} {
		j, err := typed(t).BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
		if now := err == nil && j.DeletionTimestamp == nil; now != there {
			t.Errorf("%s is there: %t, %v", name, now, err)
		}
	}
}

const onePod = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}`

// A hook of a failure runs at each failure, and its own failure is told beside the first one.
func TestAHookOfAFailureRunsAtEachFailure(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	opts := apply.Options{Ready: apply.WaitOptions{Timeout: 100 * time.Millisecond}}
	release := func(cry string) *apply.Set {
		slow := strings.Replace(job("migrate", "registry.example/api:1", hooked("Sync")), "backoffLimit: 0", "backoffLimit: 0\n  parallelism: 0", 1)
		return set(t, ns, join(slow, cry))
	}
	var before types.UID
	for range 2 {
		out, err := apply.Apply(t.Context(), config(t), release(conf("cry", "x", hooked("SyncFail"))), opts)
		cry, getErr := typed(t).CoreV1().ConfigMaps(ns).Get(t.Context(), "cry", metav1.GetOptions{})
		if err == nil || getErr != nil || cry.UID == before || out.Did(configMap(ns, "cry")) != apply.Ran {
			t.Errorf("%v, %v, %+v", err, getErr, out.Objects)
		}
		before = cry.UID
	}
	broken := strings.Replace(job("cry", "registry.example/cry:1", hooked("SyncFail")), "restartPolicy: Never", "restartPolicy: Always", 1)
	_, err := apply.Apply(t.Context(), config(t), release(broken), opts)
	if err == nil || !strings.Contains(err.Error(), "the Sync hook Job.batch "+ns+"/migrate did not succeed") || !strings.Contains(err.Error(), "the SyncFail hook Job.batch "+ns+"/cry: ") {
		t.Errorf("got %v", err)
	}
}

// A run that finds the inventory written by another leaves the rest to that: it does not tell the world that the set failed.
func TestARunThatWasOvertakenIsNoFailureOfTheSet(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, join(conf("migrate", "x", hooked("Sync")), conf("cry", "x", hooked("SyncFail"))))
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, apply.InventoryName("app")) {
			if _, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), apply.InventoryName("app"), types.MergePatchType, []byte(`{"data":{"x":"y"}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
		return next.RoundTrip(r)
	})
	out, err := apply.Apply(t.Context(), cfg, s, apply.Options{})
	if !errors.Is(err, apply.ErrInventoryMoved) || out.Did(configMap(ns, "cry")) != "" || strings.Count(err.Error(), "another run changed") != 1 {
		t.Errorf("%v, %+v", err, out.Objects)
	}
}

// Hooks of a wave are one wait, and those that end together are noted together, so that a hundred cost little more than one.
func TestManyHooksAreOneWait(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	var docs []string
	for i := range 60 {
		docs = append(docs, conf(fmt.Sprint("c-", i), "x", hooked("PreSync")))
	}
	for i := range 12 {
		docs = append(docs, job(fmt.Sprint("j-", i), "registry.example/api:1", hooked("Sync")))
	}
	var notes, watches atomic.Int64
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, apply.InventoryName("app")):
			notes.Add(1)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/jobs") && r.URL.Query().Get("watch") != "":
			watches.Add(1)
		}
		return next.RoundTrip(r)
	})
	if _, err := apply.Apply(t.Context(), cfg, set(t, ns, join(docs...)), apply.Options{}); err != nil {
		t.Fatal(err)
	}
	if notes.Load() > 20 || watches.Load() > 2 {
		t.Errorf("%d writes of the inventory, %d watches of Jobs", notes.Load(), watches.Load())
	}
}
