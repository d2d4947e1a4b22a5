package apply_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// Field case F22, of other things than a kind that is new to its group: a version that is new to a kind, a kind without a namespace, and a
// kind that another brings while this set waits for it.
func TestVersionsAndKindsThatArrive(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind                 string
		before, text, others func(group string) string
	}{
		"a new version of a kind": {kind: "Apple",
			before: func(group string) string { return join(crd(group, "Apple"), custom(group, "Apple")) },
			text: func(group string) string {
				const v1 = "{name: v1, served: true, storage: true, "
				both := strings.Replace(crd(group, "Apple"), v1, "{name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}, "+v1, 1)
				return join(strings.NewReplacer("/v1\n", "/v2\n", "n: 1", "n: 2").Replace(custom(group, "Apple")), both)
			}},
		"a kind without a namespace": {kind: "Berry", text: func(group string) string {
			return join(strings.Replace(custom(group, "Berry"), ", namespace: NS", "", 1), strings.Replace(crd(group, "Berry"), "scope: Namespaced", "scope: Cluster", 1))
		}},
		"a kind that another brings": {kind: "Cherry", others: func(group string) string { return crd(group, "Cherry") },
			text: func(group string) string { return custom(group, "Cherry") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			group := ns + ".example.com"
			if tt.before != nil {
				mustApply(t, set(t, ns, tt.before(group)), apply.Options{})
			}
			var once sync.Once
			out := mustApply(t, set(t, ns, tt.text(group)), apply.Options{Events: func(e apply.Event) {
				if e, ok := e.(apply.Retrying); ok && e.Class == apply.ClassNoMatch && tt.others != nil {
					once.Do(func() { mustApply(t, mustSet(t, "other", ns, tt.others(group)), apply.Options{}) })
				}
			}})
			ref := apply.Ref{Group: group, Kind: tt.kind, Name: "x"}
			if name != "a kind without a namespace" {
				ref.Namespace = ns
			}
			if did := out.Did(ref); did != apply.Created && did != apply.Configured {
				t.Errorf("did %q: %+v", did, out.Objects)
			}
			if again := mustApply(t, set(t, ns, tt.text(group)), apply.Options{}); again.Changed() != 0 {
				t.Errorf("again: %+v", again.Objects)
			}
		})
	}
}

func TestAKindThatNobodyServesFailsSoon(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	for name, s := range map[string]*apply.Set{
		"a map":               mapsSet(t, ns, "held", "new"),
		"a role":              mustSet(t, "role", ns, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: new, namespace: NS}"),
		"a pod":               mustSet(t, "pod", ns, "apiVersion: v1\nkind: Pod\nmetadata: {name: new, namespace: NS}\nspec: {"+plainContainer+"}"),
		"a hook":              mustSet(t, "hook", ns, job("new", "registry.example/api:1", hooked("PreSync"))),
		"a minted Secret":     mustSet(t, "mint", ns, vault("KEY: hex", "")),
		"the namespace":       mustSet(t, "itself", ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}"),
		"what the set shares": mustSet(t, "shared", ns, conf("new", "1")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apply.Apply(t.Context(), config(t), s, apply.Options{Shared: name == "what the set shares"})
			if apply.Classify(err) != apply.ClassNamespaceTerminating || !strings.Contains(err.Error(), `namespace "`+ns+`" is terminating`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Field case F23: a pod that is refused because its account is on its way is written again until that is there, be it the default one, one
// of the set's own, or a hook's pod; and no other refusal is.
func TestAnAccountThatIsOnItsWayIsWaitedFor(t *testing.T) {
	t.Parallel()
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: NS, annotations: {%s}}\nspec: {restartPolicy: Never, serviceAccountName: %s, nodeSelector: {no: where}, " + plainContainer + "}"
	for name, tt := range map[string]struct {
		doc, words string
		fails      bool
	}{
		"the default account": {doc: fmt.Sprintf(pod, "", "default"), words: `error looking up service account NS/default: serviceaccount \"default\" not found`},
		"one of its own":      {doc: join(account("runner"), fmt.Sprintf(pod, "", "runner")), words: `error looking up service account NS/runner: serviceaccount \"runner\" not found`},
		"the pod of a hook": {doc: join(account("runner", hooked("PreSync"), inWave(-1)), fmt.Sprintf(pod, hooked("PreSync"), "runner")),
			words: `error looking up service account NS/runner: serviceaccounts \"runner\" not found`},
		"missing rights": {doc: fmt.Sprintf(pod, "", "default"), words: `User \"ana\" cannot patch resource \"pods\" in API group \"\" in the namespace \"NS\"`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			var refusals, retries atomic.Int64
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && strings.Contains(r.URL.Path, "/pods") && refusals.Add(1) <= 2 {
					return answer(r, http.StatusForbidden, strings.ReplaceAll(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"x\" is forbidden: `+tt.words+`"}`, "NS", ns)), nil
				}
				return next.RoundTrip(r)
			})
			_, err := apply.Apply(t.Context(), cfg, set(t, ns, tt.doc), apply.Options{Ready: apply.WaitOptions{Waiting: -1}, Events: func(e apply.Event) {
				if e, ok := e.(apply.Retrying); ok && e.Class == apply.ClassServiceAccount {
					retries.Add(1)
				}
			}})
			_, made := typed(t).CoreV1().Pods(ns).Get(t.Context(), "x", metav1.GetOptions{})
			if tt.fails {
				if apply.Classify(err) != apply.ClassForbidden || retries.Load() != 0 || refusals.Load() != 1 {
					t.Errorf("got %v after %d refusals", err, refusals.Load())
				}
				return
			}
			if made != nil || retries.Load() != 2 || apply.Classify(err) == apply.ClassServiceAccount {
				t.Errorf("%d retries, the pod: %v, the run: %v", retries.Load(), made, err)
			}
		})
	}
}

// Field case F15: a webhook configuration waits for the server that it calls, whatever the order of the files.
func TestAWebhookComesAfterItsServer(t *testing.T) {
	t.Parallel()
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
