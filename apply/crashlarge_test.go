package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"jr2.dev/jr2/apply"
)

// Sizes of a large set, by its ConfigMaps: 60 objects, which is several times what goes on at once, and 19, in which nothing is left out but
// more of the same.
const (
	sixty    = 29
	nineteen = 8
)

// cuts are the requests after which runs are cut off: each of the smaller set, and the first of many of the larger.
func cuts() map[string]struct{ size, step int } {
	return map[string]struct{ size, step int }{"19 objects": {nineteen, 1}, "60 objects": {sixty, 13}}
}

// large is a set of a size with waves, hooks of each delete policy, and a Secret whose values are made once. Release 2 changes a third
// of them, drops some, adds some, and asks for one more minted key.
func large(release, size int) string {
	keys := "password: hex:16"
	if release == 2 {
		keys += ", salt: hex:16"
	}
	docs := []string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}",
		fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: minted, namespace: NS, annotations: {jr2.dev/mint: %q}}", "{"+keys+"}"),
		// A pod that a busy cluster loses is made again: how often the Job is made is what counts here.
		strings.Replace(job("migrate", fmt.Sprintf("registry.example/api:%d", release), hooked("Sync"), inWave(1)), "backoffLimit: 0", "backoffLimit: 6", 1),
		conf("before", fmt.Sprint(release), hooked("PreSync"), deleted("HookSucceeded")),
		conf("after", "x", hooked("PostSync"), deleted("BeforeHookCreation")),
	}
	value := func(i int) int { // one of three changes with the release
		if i%3 == 0 {
			return release
		}
		return 0
	}
	for i := range size {
		docs = append(docs, conf(fmt.Sprintf("c-%d", i+4*(release-1)), fmt.Sprint(value(i)))) // four leave, four come
	}
	for i := range size * 3 / 7 {
		docs = append(docs, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s-%d, namespace: NS}\nstringData: {word: hush-%d}", i, value(i)))
	}
	for i := range size * 5 / 14 {
		docs = append(docs, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: w-%d, namespace: NS}\nspec: {clusterIP: None, selector: {app: w-%d}, ports: [{name: http, port: %d}]}", i, i, 80+value(i)))
	}
	for i := range size / 7 {
		docs = append(docs, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: w-%d, namespace: NS, annotations: {%s}}
spec:
  replicas: 0
  selector: {matchLabels: {app: w-%d}}
  template:
    metadata: {labels: {app: w-%d}}
    spec: {containers: [{name: web, image: "registry.example/web:%d"}]}`, i, inWave(2), i, i, value(i)))
	}
	return join(docs...)
}

// A witness counts what requests of all runs did to the hooks, and the values that minted keys had.
type witness struct {
	next http.RoundTripper

	mu      sync.Mutex
	created map[string]int
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	var name string
	if r.Method == http.MethodPost && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		var object metav1.PartialObjectMetadata
		if err := json.NewDecoder(body).Decode(&object); err == nil {
			name = object.Name
		}
	}
	resp, err := w.next.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusCreated {
		w.mu.Lock()
		w.created[path.Base(r.URL.Path)+"/"+name]++
		w.mu.Unlock()
	}
	return resp, err
}

// killed runs Apply and ends the process at request n, which the server carried out. False when the run had fewer requests.
func (w *witness) killed(t *testing.T, s *apply.Set, n int) bool {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var count atomic.Int64
	cfg := config(t)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return transport(func(r *http.Request) (*http.Response, error) {
			i := int(count.Add(1))
			if i > n {
				return nil, errDead
			}
			resp, err := w.RoundTrip(r)
			if i < n || err != nil {
				return resp, err
			}
			if r.URL.Query().Get("watch") == "" { // a watch has no end
				io.Copy(io.Discard, resp.Body)
			}
			resp.Body.Close()
			kill()
			return nil, errDead
		})
	})
	_, err := apply.Apply(ctx, cfg, s, apply.CheapSums(apply.Options{Prune: true}))
	if reached := int(count.Load()) >= n; reached != (err != nil) {
		t.Fatalf("request %d: reached %t, %v", n, reached, err)
	} else {
		return reached
	}
	return false
}

var errDead = errors.New("the process is dead")

// whole runs Apply to its end.
func (w *witness) whole(t *testing.T, s *apply.Set) *apply.Outcome {
	t.Helper()
	cfg := config(t)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	})
	out, err := apply.Apply(t.Context(), cfg, s, apply.CheapSums(apply.Options{Prune: true}))
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return out
}

// state is all that a namespace holds of the set, as text by object, without what differs from one run to the next.
func state(t *testing.T, ns string) map[string]string {
	t.Helper()
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "services"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "batch", Version: "v1", Resource: "jobs"},
	} {
		list, err := client.Resource(resource).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if o.GetAnnotations()[apply.SetAnnotation] != "" && !strings.HasPrefix(o.GetName(), "jr2-inventory-") {
				all[o.GetKind()+" "+o.GetName()] = lasting(t, ns, o)
			}
		}
	}
	return all
}

// lasting is an object without what the server makes up for each.
func lasting(t *testing.T, ns string, o unstructured.Unstructured) string {
	t.Helper()
	keep := map[string]any{"annotations": o.GetAnnotations(), "labels": o.GetLabels(), "data": o.Object["data"], "type": o.Object["type"]}
	if o.GetName() == "minted" {
		data, _ := o.Object["data"].(map[string]any)
		keep["data"] = slices.Sorted(maps.Keys(data))
	}
	a := o.GetAnnotations()
	for _, differs := range []string{"jr2.dev/release", "jr2.dev/want", "deployment.kubernetes.io/revision"} { // counters, and a hash over the namespace too
		delete(a, differs)
	}
	keep["annotations"] = a
	if o.GetKind() == "Job" {
		delete(keep, "labels")
		image, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		keep["containers"] = image
	} else {
		spec, _, _ := unstructured.NestedMap(o.Object, "spec")
		keep["spec"] = spec
	}
	raw, err := json.Marshal(keep)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), ns, "NS")
}

// undisturbed is the state after each release, and how often hooks were made on the way.
func undisturbed(t *testing.T, size int) (states [3]map[string]string) {
	ns := newNamespace(t, nil)
	w := &witness{created: map[string]int{}}
	for release := 1; release <= 2; release++ {
		s := set(t, ns, large(release, size))
		w.whole(t, s)
		states[release] = state(t, ns)
		if len(states[release]) != len(s.Objects)-2 { // less the namespace, and the hook that is deleted when it succeeded
			t.Fatalf("%d objects", len(states[release]))
		}
	}
	if w.created["jobs/migrate"] != 2 {
		t.Fatalf("made %v", w.created)
	}
	return states
}

func (w *witness) check(t *testing.T, ns string, n, releases int, want map[string]string) {
	t.Helper()
	got := state(t, ns)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("cut at request %d: %s is\n%s\nwant\n%s", n, k, got[k], v)
		}
	}
	for k := range got {
		if want[k] == "" {
			t.Errorf("cut at request %d: %s is there", n, k)
		}
	}
	for _, hook := range []string{"jobs/migrate", "configmaps/before", "configmaps/after"} {
		if w.created[hook] != releases {
			t.Errorf("cut at request %d: %s was made %d times in %d releases", n, hook, w.created[hook], releases)
		}
	}
}

func mintedValues(t *testing.T, ns string) *corev1.Secret {
	t.Helper()
	s, err := typed(t).CoreV1().Secrets(ns).Get(t.Context(), "minted", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A first apply of a large set that is killed after any of its requests ends, with the next run, as one that nobody disturbed.
func TestALargeApplyIsCompletedAfterAKillAtAnyRequest(t *testing.T) {
	t.Parallel()
	for name, of := range cuts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := undisturbed(t, of.size)
			inLanes(t, crashLanes, func(t *testing.T, lane int) {
				for n := 1 + lane*of.step; ; n += crashLanes * of.step {
					ns := fmt.Sprintf("kill-%d-%d", of.size, n)
					w := &witness{created: map[string]int{}}
					if !w.killed(t, set(t, ns, large(1, of.size)), n) {
						break
					}
					w.whole(t, set(t, ns, large(1, of.size)))
					w.check(t, ns, n, 1, states[1])
				}
			})
		})
	}
}

// The same of the way from one release to another and back, where objects change, leave and come.
func TestALargeUpdateIsCompletedAfterAKillAtAnyRequest(t *testing.T) {
	t.Parallel()
	for name, of := range cuts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := undisturbed(t, of.size)
			inLanes(t, crashLanes, func(t *testing.T, lane int) { killedUpdates(t, states, of.size, 1+lane*of.step, crashLanes*of.step) })
		})
	}
}

// killedUpdates cuts off one update after the other of one namespace, each some requests later than the one before, up to one that is done by
// then.
func killedUpdates(t *testing.T, states [3]map[string]string, size, first, step int) {
	ns := newNamespace(t, nil)
	w := &witness{created: map[string]int{}}
	w.whole(t, set(t, ns, large(1, size)))
	password := string(mintedValues(t, ns).Data["password"])
	releases := 1
	for n := first; ; n += step {
		release := 1 + releases%2
		reached := w.killed(t, set(t, ns, large(release, size)), n)
		releases++
		out := w.whole(t, set(t, ns, large(release, size)))
		want := maps.Clone(states[release])
		want["Secret minted"] = states[2]["Secret minted"] // keys stay
		w.check(t, ns, n, releases, want)
		if got := mintedValues(t, ns); string(got.Data["password"]) != password || len(password) != 32 {
			t.Errorf("cut at request %d: the value was made again", n)
		}
		if !reached {
			if out.Changed() != 0 {
				t.Errorf("a run after a whole one: %+v", out.Objects)
			}
			return
		}
	}
}

// crashLanes is how many runs go on at once: most of their time is the wait for Jobs.
const crashLanes = 6

// inLanes runs n subtests at once.
func inLanes(t *testing.T, n int, run func(t *testing.T, lane int)) {
	var lanes sync.WaitGroup
	for lane := range n {
		lanes.Go(func() {
			t.Run(fmt.Sprint("lane", lane), func(t *testing.T) { run(t, lane) })
		})
	}
	lanes.Wait()
}
