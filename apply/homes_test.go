package apply_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

func namespaceDoc(name, metadata string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + metadata + "}"
}

func namespaceRef(name string) apply.Ref {
	return apply.Ref{Version: "v1", Kind: "Namespace", Name: name}
}

// A Namespace that was there and holds all that is asked of it gets no mark, so that two sets may bring it.
func TestTwoSetsMayBringANamespaceThatWasThere(t *testing.T) {
	t.Parallel()
	home := newNamespace(t, nil)
	core := typed(t).CoreV1()
	there := "there-" + home[len(home)-5:]
	made, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there, Labels: map[string]string{"team": "a"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inside := func(name string) string {
		return strings.NewReplacer("namespace: NS", "namespace: "+there, "name: inside", "name: "+name).Replace(conf("inside", "x"))
	}
	one := mustSet(t, "one", home, join(namespaceDoc(there, ""), inside("one")))
	two := mustSet(t, "two", home, join(namespaceDoc(there, ", labels: {team: a}"), inside("two")))
	for range 2 {
		for _, s := range []*apply.Set{one, two} {
			if out := mustApply(t, s, apply.Options{Prune: true}); out.Did(namespaceRef(there)) != apply.Unchanged {
				t.Errorf("%s: %+v", s.Name, out.Objects)
			}
			if p := mustPlan(t, s, apply.Options{Prune: true}); p.Changes() != 0 || p.Err() != nil {
				t.Errorf("%s planned: %v %+v", s.Name, p.Err(), p.Steps)
			}
		}
	}
	now, err := core.Namespaces().Get(t.Context(), there, metav1.GetOptions{})
	if err != nil || now.ResourceVersion != made.ResourceVersion {
		t.Errorf("it was written: %v, %v", err, now.Annotations)
	}
	more := mustSet(t, "more", home, namespaceDoc(there, ", labels: {size: big}"))
	mustApply(t, more, apply.Options{}) // who asks more of it owns what he asks
	if _, err := apply.Apply(t.Context(), config(t), one, apply.Options{}); !errors.As(err, new(*apply.OwnedError)) {
		t.Errorf("beside a set that marked it: %v", err)
	}
}

// Whatever its record says, a set deletes no Namespace that does not itself show that the set made it.
func TestANamespaceOfAForgedRecordStays(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct {
		metadata string // of the manifest
		live     string // a patch of what a set marked, by another hand
	}{
		"it was there and the set asks more of it":    {metadata: ", labels: {size: big}"},
		"the manifest says that the set made it":      {metadata: ", labels: {size: big}, annotations: {" + apply.MadeAnnotation + ": NS/app}"},
		"somebody else says so":                       {metadata: ", labels: {size: big}", live: `{"metadata":{"annotations":{"` + apply.MadeAnnotation + `":"NS/app"}}}`},
		"the notes of who says so are of another set": {metadata: ", labels: {size: big}, annotations: {" + apply.MadeAnnotation + ": NS/other}"},
	} {
		for _, way := range []string{"prune", "withdraw"} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				home := newNamespace(t, nil)
				core := typed(t).CoreV1()
				there := "there-" + home[len(home)-5:]
				if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				mustApply(t, set(t, home, namespaceDoc(there, strings.ReplaceAll(how.metadata, "NS", home))), apply.Options{})
				if how.live != "" {
					patch := []byte(strings.ReplaceAll(how.live, "NS", home))
					if _, err := core.Namespaces().Patch(t.Context(), there, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-annotate"}); err != nil {
						t.Fatal(err)
					}
				}
				editRecord(t, home, "app", func(file map[string]any) {
					for _, o := range file["objects"].([]any) {
						o.(map[string]any)["made"] = true
					}
				})
				var out *apply.Outcome
				if way == "prune" {
					out = mustApply(t, set(t, home, conf("stays", "x")), apply.Options{Prune: true, PruneData: []apply.Ref{namespaceRef(there)}})
				} else {
					var err error
					if out, err = apply.Withdraw(t.Context(), config(t), "app", home, apply.Options{}); err != nil {
						t.Fatal(err)
					}
				}
				if out.Did(namespaceRef(there)) != apply.Kept {
					t.Errorf("%+v", out.Objects)
				}
				if now, err := core.Namespaces().Get(t.Context(), there, metav1.GetOptions{}); err != nil || now.DeletionTimestamp != nil {
					t.Errorf("it goes: %v", err)
				}
			})
		}
	}
}

// A Namespace that somebody makes between the look and the write is joined, and does not say that the set made it.
func TestANamespaceThatSomebodyMadeMeanwhileIsJoined(t *testing.T) {
	t.Parallel()
	home := newNamespace(t, nil)
	core := typed(t).CoreV1()
	raced := "raced-" + home[len(home)-5:]
	var once atomic.Bool
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/namespaces/"+raced) && once.CompareAndSwap(false, true) {
			if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: raced, Labels: map[string]string{"team": "b"}}},
				metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
				t.Error(err)
			}
		}
		return next.RoundTrip(r)
	})
	s := set(t, home, namespaceDoc(raced, ""))
	if _, err := apply.Apply(t.Context(), cfg, s, apply.Options{}); err != nil {
		t.Fatal(err)
	}
	if now, err := core.Namespaces().Get(t.Context(), raced, metav1.GetOptions{}); err != nil || now.Annotations[apply.MadeAnnotation] != "" || now.Labels["team"] != "b" {
		t.Errorf("%v: %v %v", err, now.Annotations, now.Labels)
	}
	if out := mustApply(t, set(t, home, conf("stays", "x")), apply.Options{Prune: true, PruneData: []apply.Ref{namespaceRef(raced)}}); out.Did(namespaceRef(raced)) != apply.Kept {
		t.Errorf("%+v", out.Objects)
	}
}

// editRecord changes the first part of a record as an editor of the namespace could.
func editRecord(t *testing.T, ns, name string, change func(file map[string]any)) {
	t.Helper()
	maps := typed(t).CoreV1().ConfigMaps(ns)
	head, err := maps.Get(t.Context(), apply.InventoryName(name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal([]byte(head.Data["inventory.json"]), &file); err != nil {
		t.Fatal(err)
	}
	change(file)
	raw, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	head.Data["inventory.json"] = string(raw)
	if _, err := maps.Update(t.Context(), head, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
}
