package apply_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jr2.dev/jr2/apply"
)

// A Namespace takes along all that is in it: what was judged to go and stays keeps it.
func TestANamespaceStaysWithWhatStaysInIt(t *testing.T) {
	t.Parallel()
	home := newNamespace(t, nil)
	other := "inner-" + home[len(home)-5:]
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + other + "}"
	inside := strings.Replace(conf("inside", "x"), "namespace: NS", "namespace: "+other, 1)
	mustApply(t, set(t, home, join(namespace, inside)), apply.Options{})
	ref := apply.Ref{Version: "v1", Kind: "Namespace", Name: other}
	out, err := apply.Apply(t.Context(), refusing(t, "DELETE", "/configmaps/inside"), set(t, home, conf("stays", "x")), apply.Options{Prune: true, PruneData: []apply.Ref{ref}})
	if err == nil || out.Did(ref) != apply.Kept {
		t.Errorf("%v, %+v", err, out.Objects)
	}
	ns, err := typed(t).CoreV1().Namespaces().Get(t.Context(), other, metav1.GetOptions{})
	if err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace goes: %v", err)
	}
}

// So does what others put into it while the prune waited for something else.
func TestANamespaceStaysWithWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.finalize(t, `["example.com/drain"]`)
	other := "inner-" + l.ns[len(l.ns)-5:]
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + other + "}"
	mustApply(t, set(t, l.ns, join(crd(l.group, "Lake"), l.served(), l.operator(), namespace)), apply.Options{})
	ref := apply.Ref{Version: "v1", Kind: "Namespace", Name: other}
	out := mustApply(t, l.definition(t), apply.Options{Prune: true, PruneData: []apply.Ref{ref}, Events: func(e apply.Event) {
		if w, ok := e.(apply.Waiting); ok && w.Ref == l.ref() {
			if _, err := typed(t).CoreV1().Secrets(other).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			l.finalize(t, `null`)
		}
	}})
	if out.Did(ref) != apply.Kept {
		t.Errorf("%+v", out.Objects)
	}
}

// A stranger's resource keeps its definition.
func TestADefinitionStaysWithResourcesOfOthers(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"prune", "withdraw"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l, elsewhere := newLake(t), newNamespace(t, nil)
			theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": l.group + "/v1", "kind": "Lake", "metadata": map[string]any{"name": "theirs"}}}
			lakes := l.client.Resource(schema.GroupVersionResource{Group: l.group, Version: "v1", Resource: "lakes"}).Namespace(elsewhere)
			if _, err := lakes.Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
				t.Fatal(err)
			}
			definition := apply.RefOf(set(t, l.ns, crd(l.group, "Lake")).Objects[0])
			var out *apply.Outcome
			var err error
			if how == "prune" {
				out, err = apply.Apply(t.Context(), config(t), set(t, l.ns, conf("conf", "x")), apply.Options{Prune: true, PruneData: []apply.Ref{definition}})
			} else {
				out, err = apply.Withdraw(t.Context(), config(t), "app", l.ns, apply.Options{})
			}
			if err != nil || out.Did(definition) != apply.Kept {
				t.Errorf("%v: %+v", err, out.Objects)
			}
			if _, err := lakes.Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
				t.Errorf("a stranger's resource is gone: %v", err)
			}
		})
	}
}

// A Namespace that waits for a held resource is the set's still.
func TestWithdrawGoesOnWithItsNamespace(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	other := "inner-" + l.ns[len(l.ns)-5:]
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + other + "}"
	mustApply(t, set(t, l.ns, join(crd(l.group, "Lake"), l.served(), l.operator(), namespace)), apply.Options{Prune: true})
	l.finalize(t, `["example.com/drain"]`)
	brief := apply.Options{Ready: apply.WaitOptions{Timeout: 300 * time.Millisecond}}
	out, err := apply.Withdraw(t.Context(), config(t), "app", l.ns, brief)
	if !errors.As(err, new(*apply.RemovalError)) {
		t.Fatalf("%v: %+v", err, out.Objects)
	}
	l.finalize(t, `null`)
	out, err = apply.Withdraw(t.Context(), config(t), "app", l.ns, apply.Options{})
	ref := apply.Ref{Version: "v1", Kind: "Namespace", Name: other}
	if err != nil || out.Did(ref) != apply.Pruned {
		t.Errorf("%v: %+v", err, out.Objects)
	}
}

// A wait that can't be made is a wait that has not ended.
func TestWhatNobodySawGoIsNotGone(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.finalize(t, `["example.com/drain"]`)
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/lakes") {
			return answer(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not allowed"}`), nil
		}
		return next.RoundTrip(r)
	})
	if _, err := apply.Apply(t.Context(), cfg, l.definition(t), apply.Options{Prune: true}); !errors.As(err, new(*apply.RemovalError)) {
		t.Errorf("got %v", err)
	}
	if there, account := l.operates(t); !there || !account {
		t.Error("what serves the resource is gone")
	}
	l.finalize(t, `null`)
}

// A list of chunks that names somebody else's ConfigMap.
func TestAMapThatARecordCallsItsPartStays(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "a", "stays"), apply.Options{})
	mustApply(t, mustSet(t, "other", ns, conf("others", "x")), apply.Options{})
	maps := typed(t).CoreV1().ConfigMaps(ns)
	head, err := maps.Get(t.Context(), apply.InventoryName("app"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	head.Data["chunks.json"] = `["` + apply.InventoryName("other") + `"]`
	if _, err := maps.Update(t.Context(), head, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = apply.Apply(t.Context(), config(t), mapsSet(t, ns, "a", "stays"), apply.Options{Prune: true})
	if unreadable := (*apply.InventoryError)(nil); !errors.As(err, &unreadable) {
		t.Errorf("got %v", err)
	}
	if _, err := maps.Get(t.Context(), apply.InventoryName("other"), metav1.GetOptions{}); err != nil {
		t.Errorf("the other set's record is gone: %v", err)
	}
}

// A copy by a program has the server's notes too.
func TestACopyWithTheServersNotesIsNoMark(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "a", "stays"), apply.Options{})
	maps := typed(t).CoreV1().ConfigMaps(ns)
	ours, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := ours.DeepCopy()
	theirs.Name, theirs.UID, theirs.ResourceVersion = "copy", "", ""
	if _, err := maps.Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "replicator"}); err != nil {
		t.Fatal(err)
	}
	_, err = apply.Apply(t.Context(), config(t), mapsSet(t, ns, "a", "stays", "copy"), apply.Options{})
	if !errors.As(err, new(*apply.UnownedError)) {
		t.Errorf("got %v", err)
	}
}

// Claims hold data, and a StatefulSet may say that they go with it.
func TestAStatefulSetWhoseClaimsGoWithItStays(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	sts := `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: NS}
spec:
  serviceName: db
  replicas: 0
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {` + plainContainer + `}}
  volumeClaimTemplates: [{metadata: {name: state}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]`
	mustApply(t, set(t, ns, join(sts, conf("stays", "x"))), apply.Options{})
	out := mustApply(t, set(t, ns, conf("stays", "x")), apply.Options{Prune: true})
	ref := apply.Ref{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: ns, Name: "db"}
	if out.Did(ref) != apply.Kept {
		t.Errorf("%+v", out.Objects)
	}
	if out := mustApply(t, set(t, ns, conf("stays", "x")), apply.Options{Prune: true, PruneData: []apply.Ref{ref}}); out.Did(ref) != apply.Pruned {
		t.Errorf("named: %+v", out.Objects)
	}
}

// Whoever may edit the record may write there what names no object; no apply fails for it.
func TestARecordOfNothingStopsNothing(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"a path":                   `{"version":"v1","kind":"ConfigMap","namespace":"../kube-system","name":"x"}`,
		"dots":                     `{"version":"v1","kind":"ConfigMap","namespace":"NS","name":".."}`,
		"a slash":                  `{"version":"v1","kind":"ConfigMap","namespace":"NS","name":"a/b"}`,
		"no name":                  `{"version":"v1","kind":"ConfigMap","namespace":"NS","name":""}`,
		"no kind":                  `{"version":"v1","kind":"","namespace":"NS","name":"x"}`,
		"no namespace":             `{"version":"v1","kind":"ConfigMap","name":"x"}`,
		"nothing":                  `{}`,
		"control":                  `{"version":"v1","kind":"ConfigMap","namespace":"NS","name":"\u001b[2Jx"}`,
		"a group that is a path":   `{"group":"../../api","version":"v1","kind":"ConfigMap","namespace":"NS","name":"x"}`,
		"a version that is a path": `{"group":"apps","version":"../v1","kind":"Deployment","namespace":"NS","name":"x"}`,
		"control kind":             `{"version":"v1","kind":"\u001b[2JKind","namespace":"NS","name":"x"}`,
		"null":                     `null`,
		"twice":                    `{"version":"v1","kind":"ConfigMap","namespace":"NS","name":"stays","uid":"0"},{"version":"v1","kind":"ConfigMap","namespace":"NS","name":"stays"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			mustApply(t, mapsSet(t, ns, "stays"), apply.Options{})
			addRecord(t, ns, "app", strings.ReplaceAll(record, "NS", ns))
			out, err := apply.Apply(t.Context(), config(t), mapsSet(t, ns, "stays"), apply.Options{Prune: true, Retry: apply.Retry{Limit: 2 * time.Second}})
			if err != nil || out.Changed() != 0 {
				t.Errorf("%v %+v", err, out.Objects)
			}
		})
	}
}
