package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

// A large inventory is split, and shrinks to one object again without leaving parts behind. What is stored already is not written again, so each write is of another number.
func TestALargeInventoryIsSplit(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	client := typed(t)
	s := mapsSet(t, ns)
	var refs []apply.Ref
	for i := range 300 {
		refs = append(refs, configMap(ns, fmt.Sprint("c-", i)))
	}
	for _, tt := range []struct{ limit, refs int }{{4 << 10, 300}, {4 << 10, 290}, {1 << 20, 299}, {8 << 10, 300}, {8 << 10, 1}} {
		objects, err := apply.WriteInventory(t.Context(), client, s, tt.limit, refs[:tt.refs])
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=jr2"})
		if err != nil || len(list.Items) != objects || (tt.limit < 1<<20 && tt.refs > 1) != (objects > 1) {
			t.Errorf("%+v: %d objects of %d, %v", tt, len(list.Items), objects, err)
		}
		if n, err := apply.ReadInventory(t.Context(), client, s); err != nil || n != tt.refs {
			t.Errorf("%+v: %d records, %v", tt, n, err)
		}
	}
}

// Two runs of one set without a lock: the one that comes second says so and destroys nothing.
func TestTwoRunsAtOnceAreNoticed(t *testing.T) {
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "a"), apply.Options{})
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, apply.InventoryName("app")) {
			mustApply(t, mapsSet(t, ns, "a", "theirs"), apply.Options{})
		}
		return next.RoundTrip(r)
	})
	_, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "a", "ours"), apply.Options{Prune: true})
	if !errors.Is(err, apply.ErrInventoryMoved) {
		t.Errorf("got %v", err)
	}
	mustApply(t, mapsSet(t, ns, "a", "ours"), apply.Options{Prune: true})
}

// A set that brings its namespace can be tried on a cluster that has neither, and nothing is written.
func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	const ns = "t-never-made"
	s := set(t, ns, small(1))
	out := mustApply(t, s, apply.Options{DryRun: true, Prune: true})
	if out.Count(apply.Created) != len(s.Objects) {
		t.Errorf("got %+v", out.Objects)
	}
	if _, err := typed(t).CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); apply.Classify(err) != apply.ClassNotFound {
		t.Errorf("the namespace: %v", err)
	}

	live := newNamespace(t, nil)
	mustApply(t, set(t, live, stack), apply.Options{})
	changed := set(t, live, strings.Replace(stack, `{a: "1"}`, `{a: "2"}`, 1))
	for range 2 {
		out := mustApply(t, changed, apply.Options{DryRun: true, Prune: true})
		if out.Did(configMap(live, "conf")) != apply.Configured || out.Changed() != 1 {
			t.Errorf("got %+v", out.Objects)
		}
	}
}

// An equal set costs reads only: no write, no read of a single object whose kind can be listed, no values of Secrets.
func TestAnEqualSetWritesNothing(t *testing.T) {
	ns := newNamespace(t, nil)
	s := set(t, ns, stack)
	mustApply(t, s, apply.Options{Prune: true})
	requests := make(chan *http.Request, 100)
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		requests <- r
		return next.RoundTrip(r)
	})
	if out, err := apply.Apply(t.Context(), cfg, s, apply.Options{Prune: true}); err != nil || out.Changed() != 0 {
		t.Fatalf("%+v, %v", out.Objects, err)
	}
	close(requests)
	n := 0
	for r := range requests {
		n++
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		if strings.Contains(r.URL.Path, "/secrets") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			t.Errorf("a Secret was read: %s", r.URL.Path)
		}
	}
	if n > 4+len(s.Objects) { // the kinds of three groups, the inventory, and at most one read for each kind
		t.Errorf("%d requests for %d objects", n, len(s.Objects))
	}
}

// Parts are cut by size: names are of all lengths, and those of one kind lie together.
func TestPartsOfAnInventoryAreOfOneSize(t *testing.T) {
	ns := newNamespace(t, nil)
	var refs []apply.Ref
	for i := range 60 {
		refs = append(refs, configMap(ns, fmt.Sprint("a-", i)), configMap(ns, fmt.Sprint("b-", strings.Repeat("long", 55), i)))
	}
	const limit = 8 << 10
	if _, err := apply.WriteInventory(t.Context(), typed(t), mapsSet(t, ns), limit, refs); err != nil {
		t.Fatal(err)
	}
	list, err := typed(t).CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=jr2"})
	if err != nil || len(list.Items) < 3 {
		t.Fatalf("%d, %v", len(list.Items), err)
	}
	for _, m := range list.Items {
		for k, text := range m.Data {
			if len(text) > limit {
				t.Errorf("%s of %s has %d bytes", k, m.Name, len(text))
			}
		}
	}
	if n, err := apply.ReadInventory(t.Context(), typed(t), mapsSet(t, ns)); err != nil || n != len(refs) {
		t.Errorf("%d, %v", n, err)
	}
}

// A set without objects has nothing to note and needs no namespace; one that became empty prunes what it had.
func TestASetWithoutObjects(t *testing.T) {
	if out := mustApply(t, mapsSet(t, "t-no-such-namespace"), apply.Options{Prune: true}); len(out.Objects) != 0 {
		t.Errorf("%+v", out.Objects)
	}
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, join(conf("api", "x"), conf("migrate", "x", hooked("Sync")))), apply.Options{Prune: true})
	if out := mustApply(t, mapsSet(t, ns), apply.Options{Prune: true}); out.Count(apply.Pruned) != 2 {
		t.Errorf("%+v", out.Objects)
	}
	if out := mustApply(t, mapsSet(t, ns), apply.Options{Prune: true}); len(out.Objects) != 0 {
		t.Errorf("%+v", out.Objects)
	}
}

// The release is kept beside the parts of an inventory that is split, and hooks that ran do not run again.
func TestTheReleaseOfASplitInventory(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, join(conf("migrate", "x", hooked("Sync")), conf("a", "x"), conf("b", "x")))
	mustApply(t, s, apply.Options{})
	if n, err := apply.WriteInventory(t.Context(), typed(t), s, 200, []apply.Ref{configMap(ns, "migrate"), configMap(ns, "a"), configMap(ns, "b")}); err != nil || n < 3 {
		t.Fatalf("%d objects, %v", n, err)
	}
	for range 2 {
		if out := mustApply(t, s, apply.Options{Prune: true}); out.Changed() != 0 {
			t.Errorf("%+v", out.Objects)
		}
	}
}
