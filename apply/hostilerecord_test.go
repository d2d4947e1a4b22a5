package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// editHead changes the data of a record as an editor of the namespace could.
func editHead(t *testing.T, ns, set string, change func(data map[string]string)) {
	t.Helper()
	maps := typed(t).CoreV1().ConfigMaps(ns)
	head, err := maps.Get(t.Context(), apply.InventoryName(set), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(head.Data)
	if _, err := maps.Update(t.Context(), head, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
}

// A record of parts that no run wrote costs two requests and a line, which says how to go on.
func TestPartsThatNoRunWroteAreRefused(t *testing.T) {
	t.Parallel()
	names := func(of func(i int) string, n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = of(i)
		}
		raw, _ := json.Marshal(all) //nolint:errcheck // strings
		return string(raw)
	}
	part := apply.InventoryName("app") + "-"
	for name, chunks := range map[string]string{
		"many parts":          names(func(i int) string { return fmt.Sprint(part, i) }, 20_000),
		"one part many times": names(func(int) string { return part + "0123456789" }, 60),
		"of another set":      names(func(int) string { return apply.InventoryName("other") + "-0123456789" }, 1),
		"any map":             names(func(int) string { return "kube-root-ca.crt" }, 1),
		"a path elsewhere":    names(func(int) string { return part + "/../../v/configmaps/x" }, 1),
		"control characters":  names(func(int) string { return part + "\x1b[2J\r\n" }, 1),
		"a long name":         names(func(int) string { return part + strings.Repeat("a", 500_000) }, 1),
		"no list":             `{"a":1}`,
		"very deep":           strings.Repeat("[", 300_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			mustApply(t, mapsSet(t, ns, "a"), apply.Options{})
			editHead(t, ns, "app", func(data map[string]string) { data["chunks.json"] = chunks })
			var read atomic.Int64
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.Path, "/configmaps/jr2-inventory") {
					read.Add(1)
				}
				return next.RoundTrip(r)
			})
			_, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "a"), apply.Options{Prune: true})
			var inventory *apply.InventoryError
			if !errors.As(err, &inventory) || len(err.Error()) > 1000 || read.Load() > 2 || strings.Contains(err.Error(), "\x1b") ||
				!strings.Contains(err.Error(), "kubectl delete configmap jr2-inventory-app -n "+ns) {
				t.Errorf("%d reads, %.300v", read.Load(), err)
			}
		})
	}
}

// What a record says beside what it lists is bounded: what no run wrote is nothing, and the next run writes it anew.
func TestNotesThatNoRunWroteAreNothing(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "stays", "goes"), apply.Options{})
	long := strings.Repeat("\x1b[2J", 10_000)
	editRecord(t, ns, "app", func(file map[string]any) {
		for _, o := range file["objects"].([]any) {
			for _, key := range []string{"keep", "want", "entry", "seen"} {
				o.(map[string]any)[key] = long
			}
		}
	})
	out := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	if out.Did(configMap(ns, "goes")) != apply.Pruned || strings.Contains(fmt.Sprint(out), "\x1b") {
		t.Errorf("got %.500v", out)
	}
	head, err := typed(t).CoreV1().ConfigMaps(ns).Get(t.Context(), apply.InventoryName("app"), metav1.GetOptions{})
	if err != nil || len(head.Data["inventory.json"]) > 1000 {
		t.Errorf("%v, %d bytes stay", err, len(head.Data["inventory.json"]))
	}
	for name, release := range map[string]string{
		"large":       `{"number":1,"salt":"` + strings.Repeat("a", 400_000) + `","sum":"b"}`,
		"many hooks":  `{"number":1,"salt":"a","sum":"b","done":["` + strings.Repeat("a", 400_000) + `"]}`,
		"last number": `{"number":9223372036854775807,"salt":"a","sum":"b"}`,
		"below zero":  `{"number":-5,"salt":"a","sum":"b"}`,
	} {
		editHead(t, ns, "app", func(data map[string]string) { data["release.json"] = release })
		_, err := apply.Apply(t.Context(), config(t), mapsSet(t, ns, "stays"), apply.Options{Prune: true})
		if !errors.As(err, new(*apply.InventoryError)) || len(err.Error()) > 1000 {
			t.Errorf("a release, %s: %.300v", name, err)
		}
	}
}

// A record of thousands of objects in thousands of places, which somebody wrote, costs a bounded number of requests, deletes nothing, and the apply goes on.
func TestARecordOfThousandsOfPlacesIsLookedAtInPart(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "stays", "goes"), apply.Options{})
	editRecord(t, ns, "app", func(file map[string]any) {
		all := file["objects"].([]any)
		for i := range 1500 {
			all = append(all,
				map[string]any{"kind": "ConfigMap", "version": "v1", "namespace": fmt.Sprint("v-", i), "name": "kube-root-ca.crt"},
				map[string]any{"group": fmt.Sprintf("g%d.example.com", i), "version": "v1", "kind": "Thing", "name": "x"},
				map[string]any{"group": fmt.Sprintf("h%d.example.com", i), "kind": "Thing", "namespace": "v", "name": "x"})
		}
		file["objects"] = all
	})
	var requests atomic.Int64
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		requests.Add(1)
		return next.RoundTrip(r)
	})
	out, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	if err != nil || out.Count(apply.Pruned) > 1 || requests.Load() > 3000 {
		t.Fatalf("%d requests, %d pruned, %v", requests.Load(), out.Count(apply.Pruned), err)
	}
	leaving, err := apply.Leaving(t.Context(), typed(t), mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	if err != nil || len(leaving.Goes)+len(leaving.Unseen) > 1 {
		t.Errorf("leaving: %v, %v", leaving, err)
	}
	for round := 0; out.Count(apply.Pruned) == 0; round++ { // the next runs look further
		if out = mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true}); round > 8 {
			t.Fatal("what left the set is never reached")
		}
		if out.Did(configMap(ns, "goes")) == apply.Absent {
			break
		}
	}
}

// What a record names and the caller may not look at stops nothing, and is left alone.
func TestARecordOfWhatTheCallerMayNotSeeStopsNothing(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "stays"), apply.Options{})
	editRecord(t, ns, "app", func(file map[string]any) {
		file["objects"] = append(file["objects"].([]any), map[string]any{"version": "v1", "kind": "Secret", "namespace": "v", "name": "creds", "uid": "x"},
			map[string]any{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "cluster-admin", "uid": "x"})
	})
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/namespaces/v/secrets") || strings.HasPrefix(r.URL.Path, "/apis/rbac.authorization.k8s.io/v1/clusterroles") {
			return answer(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not allowed"}`), nil
		}
		return next.RoundTrip(r)
	})
	out, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	if err != nil || out.Count(apply.Kept) != 2 {
		t.Errorf("%v: %+v", err, out.Objects)
	}
}

// Rights follow marks: what a record lists and does not carry the mark needs none, so no role is made by it.
func TestOnlyWhatCarriesTheMarkIsLeaving(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t, nil), newNamespace(t, nil)
	core := typed(t).CoreV1()
	mustApply(t, mapsSet(t, ns, "stays", "goes", "copied"), apply.Options{})
	mark := map[string]string{apply.SetAnnotation: ns + "/app"}
	for name, annotations := range map[string]map[string]string{"plain": nil, "copied": mark} {
		if _, err := core.Secrets(other).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			t.Fatal(err)
		}
	}
	editRecord(t, ns, "app", func(file map[string]any) {
		for _, ref := range []map[string]any{
			{"version": "v1", "kind": "Secret", "namespace": other, "name": "plain"}, {"version": "v1", "kind": "Secret", "namespace": other, "name": "copied"},
			{"version": "v1", "kind": "Secret", "namespace": other, "name": "absent"}, {"version": "v1", "kind": "Namespace", "name": other},
			{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "cluster-admin"},
		} {
			file["objects"] = append(file["objects"].([]any), ref)
		}
	})
	leaving, err := apply.Leaving(t.Context(), typed(t), mapsSet(t, ns, "stays", "copied"), apply.Options{Prune: true})
	if err != nil || len(leaving.Goes) != 1 || leaving.Goes[0] != configMap(ns, "goes") || len(leaving.Stays)+len(leaving.Unseen) != 0 {
		t.Errorf("%+v, %v", leaving, err)
	}
}

// A copy with the mark is written no more than any other object of others, though a record says that the set made it.
func TestARecordMakesNoCopyTheSetsOwn(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	mustApply(t, mapsSet(t, ns, "a"), apply.Options{})
	theirs, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{apply.SetAnnotation: ns + "/app"}},
		Data: map[string]string{"theirs": "x"}}, metav1.CreateOptions{FieldManager: "kubectl-create"})
	if err != nil {
		t.Fatal(err)
	}
	editRecord(t, ns, "app", func(file map[string]any) {
		file["objects"] = append(file["objects"].([]any), map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": ns, "name": "b", "uid": string(theirs.UID)})
	})
	if _, err := apply.Apply(t.Context(), config(t), mapsSet(t, ns, "a", "b"), apply.Options{}); !errors.As(err, new(*apply.UnownedError)) {
		t.Errorf("got %v", err)
	}
	if now, err := maps.Get(t.Context(), "b", metav1.GetOptions{}); err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it was written: %v", err)
	}
}

// A mark of any length and of any characters is told in a line.
func TestAHugeMarkIsToldInALine(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	mustApply(t, mapsSet(t, ns, "a", "goes"), apply.Options{})
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{apply.SetAnnotation: strings.Repeat("\x1b[2J\u202e", 25_000)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "goes"} {
		if _, err := maps.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-annotate"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = apply.Apply(t.Context(), config(t), mapsSet(t, ns, "a"), apply.Options{Prune: true})
	var owned *apply.OwnedError
	if !errors.As(err, &owned) || len(err.Error()) > 1000 {
		t.Errorf("got %.300v", err)
	}
	out := mustApply(t, mapsSet(t, ns, "b"), apply.Options{Prune: true})
	for _, o := range out.Objects {
		if len(o.Why) > 1000 {
			t.Errorf("%s: %.200s", o.Ref, o.Why)
		}
	}
	if out.Count(apply.Pruned) != 0 {
		t.Errorf("%+v", out.Objects)
	}
}
