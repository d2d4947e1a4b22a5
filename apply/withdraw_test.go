package apply_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// However many objects are held, a Withdraw waits once for all of a stage, and the next one goes on.
func TestAWithdrawWaitsOnceForAllThatIsHeld(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	var docs []string
	for i := range 40 {
		docs = append(docs, strings.Replace(conf("m"+string(rune('a'+i%26))+string(rune('a'+i/26)), "x"), "namespace: NS,", "namespace: NS, finalizers: [example.com/hold],", 1))
	}
	docs = append(docs, account("operator"))
	mustApply(t, set(t, ns, join(docs...)), apply.Options{})
	const brief = 2 * time.Second
	t0 := time.Now()
	_, err := apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{Ready: apply.WaitOptions{Timeout: brief}})
	if !errors.As(err, new(*apply.RemovalError)) || time.Since(t0) > 3*brief {
		t.Errorf("%v after %s", err, time.Since(t0))
	}
	maps, err := typed(t).CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps.Items {
		if len(m.Finalizers) > 0 {
			_, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), m.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		}
	}
	if out, err := apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{}); err != nil {
		t.Errorf("%v %+v", err, out.Objects)
	}
}

// The Namespace that the set made goes with the record in it, and with what controllers made there of the set's own.
func TestWithdrawTakesTheNamespaceOfItsRecord(t *testing.T) {
	t.Parallel()
	base := newNamespace(t, nil)
	home := "home-" + base[len(base)-5:]
	doc := join("apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}", conf("c", "x"), deployment("d"),
		"apiVersion: v1\nkind: Service\nmetadata: {name: d, namespace: NS}\nspec: {selector: {app: d}, ports: [{port: 80}]}",
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: state, namespace: NS}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		strings.Replace(deployment("w"), "replicas: 0", "replicas: 2", 1))
	mustApply(t, set(t, home, doc), apply.Options{Wait: true})
	out, err := apply.Withdraw(t.Context(), config(t), "app", home, apply.Options{})
	ref := apply.Ref{Version: "v1", Kind: "Namespace", Name: home}
	if err != nil || out.Did(ref) != apply.Pruned {
		t.Errorf("%v %+v", err, out.Objects)
	}
}
