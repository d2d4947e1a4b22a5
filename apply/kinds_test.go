package apply_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

// crd defines a kind in a group of the test's own.
func crd(group, kind string) string {
	plural := strings.ToLower(kind) + "s"
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.` + group + `}
spec:
  group: ` + group + `
  names: {kind: ` + kind + `, plural: ` + plural + `}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {n: {type: integer}}}}}}}]`
}

func custom(group, kind string) string {
	return `apiVersion: ` + group + `/v1
kind: ` + kind + `
metadata: {name: x, namespace: NS}
spec: {n: 1}`
}

// Field case F22: a kind that arrives with the set, in a new group and in one that was known before; and a plan of it all.
func TestKindsThatArriveWithTheSet(t *testing.T) {
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	// The custom resources come first in the text; the order of writing is the engine's.
	first := set(t, ns, custom(group, "Apple")+"\n---\n"+crd(group, "Apple"))
	both := set(t, ns, custom(group, "Berry")+"\n---\n"+custom(group, "Apple")+"\n---\n"+crd(group, "Apple")+"\n---\n"+crd(group, "Berry"))

	dry := mustApply(t, first, apply.Options{DryRun: true})
	if dry.Count(apply.Created) != 2 || dry.Did(apply.Ref{Group: group, Kind: "Apple", Namespace: ns, Name: "x"}) != apply.Created {
		t.Errorf("dry run: %+v", dry.Objects)
	}
	if out := mustApply(t, first, apply.Options{Prune: true}); out.Count(apply.Created) != 2 {
		t.Errorf("first: %+v", out.Objects)
	}
	if out := mustApply(t, both, apply.Options{Prune: true}); out.Count(apply.Created) != 2 || out.Changed() != 2 {
		t.Errorf("second: %+v", out.Objects)
	}
	if out := mustApply(t, both, apply.Options{Prune: true}); out.Changed() != 0 {
		t.Errorf("third: %+v", out.Objects)
	}
	// The definition holds data, so it stays; the custom resource goes.
	out := mustApply(t, first, apply.Options{Prune: true})
	if out.Count(apply.Pruned) != 1 || out.Count(apply.Kept) != 1 {
		t.Errorf("shrunk: %+v", out.Objects)
	}
}

func TestAKindThatNobodyServesFailsSoon(t *testing.T) {
	ns := newNamespace(t, nil)
	began := time.Now()
	_, err := apply.Apply(t.Context(), config(t), set(t, ns, custom("nowhere.example.com", "Ghost")), apply.Options{})
	if apply.Classify(err) != apply.ClassNoMatch || !strings.Contains(err.Error(), "Ghost.nowhere.example.com "+ns+"/x") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	// Nothing is left of it: when the kind was only spelled wrong, the next run has nothing to keep or to prune.
	if refs, err := apply.Owned(t.Context(), typed(t), "app", ns); err != nil || len(refs) != 0 {
		t.Errorf("the inventory holds %v, %v", refs, err)
	}
}

// Field case F23: a dying namespace stops the run, is not told as missing rights, and what holds it is named.
func TestATerminatingNamespaceIsNamed(t *testing.T) {
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	mustApply(t, mapsSet(t, ns, "held"), apply.Options{})
	hold := func(list string) {
		if _, err := maps.Patch(t.Context(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	hold(`["example.com/hold"]`)
	defer hold("null")
	if err := typed(t).CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := apply.Apply(t.Context(), config(t), mapsSet(t, ns, "held", "new"), apply.Options{})
	if apply.Classify(err) != apply.ClassNamespaceTerminating || !strings.Contains(err.Error(), `namespace "`+ns+`" is terminating`) {
		t.Errorf("got %v", err)
	}
	_, err = apply.Apply(t.Context(), config(t), set(t, ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}"), apply.Options{})
	if apply.Classify(err) != apply.ClassNamespaceTerminating {
		t.Errorf("the namespace itself: %v", err)
	}
}

// Field case F15: a webhook configuration waits for the server that it calls, whatever the order of the files.
func TestAWebhookComesAfterItsServer(t *testing.T) {
	ns := newNamespace(t, nil)
	s := set(t, ns, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: w.example.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {namespace: NS, name: web, path: /v}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
---
`+stack)
	var order []string
	mustApply(t, s, apply.Options{Events: func(e apply.Event) {
		switch e := e.(type) {
		case apply.Applied:
			order = append(order, e.Ref.Kind)
		case apply.Waiting:
			order = append(order, "waits")
			if !strings.Contains(e.Reason, "webhook w.example.io calls the Service "+ns+"/web") {
				t.Errorf("waits for %s", e.Reason)
			}
		}
	}})
	if got := order[len(order)-1]; got != "ValidatingWebhookConfiguration" {
		t.Errorf("order %v", order)
	}
	// Its server does not really run: what it judges is refused, told so, and retried within the bound.
	s2, err := apply.NewSet("other", ns, objects(t, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: judged, namespace: NS}")...)
	if err != nil {
		t.Fatal(err)
	}
	retried := false
	_, err = apply.Apply(t.Context(), config(t), s2, apply.Options{Retry: apply.Retry{Limit: time.Second}, Events: func(e apply.Event) {
		if e, ok := e.(apply.Retrying); ok && e.Class == apply.ClassWebhookUnready {
			retried = true
		}
	}})
	if apply.Classify(err) != apply.ClassWebhookUnready || !retried {
		t.Errorf("got %v, retried %t", err, retried)
	}
	out, err := apply.Remove(t.Context(), config(t), apply.RemoveOptions{}, apply.Ref{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration", Name: ns})
	if err != nil || out[0].Action != apply.Pruned {
		t.Errorf("%+v, %v", out, err)
	}
}
