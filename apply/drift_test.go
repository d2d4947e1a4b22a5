package apply_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"jr2.dev/jr2/apply"
)

// four has one object of each of the kinds that most sets are made of.
const four = `apiVersion: v1
kind: ConfigMap
metadata: {name: x, namespace: NS, labels: {team: blue}}
data: {a: "1", b: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: x, namespace: NS, labels: {team: blue}}
stringData: {a: hush, b: whisper}
---
apiVersion: v1
kind: Service
metadata: {name: x, namespace: NS, labels: {team: blue}}
spec: {selector: {app: x, tier: web}, ports: [{name: http, port: 80}, {name: admin, port: 81}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x, namespace: NS, labels: {team: blue}}
spec:
  replicas: 0
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: x, image: "registry.example/x:1", env: [{name: A, value: "1"}, {name: B, value: "2"}]}]}`

// A driftCase changes the objects of four: their values at the path, or the item.
type driftedKind struct {
	kind, group string
	path        []string // a map of ours
	key         string   // in it
	value       any
	item        string // JSON pointer of something of ours
}

func driftedKinds() []driftedKind {
	return []driftedKind{
		{"configmaps", "", []string{"data"}, "a", "drifted", "/data/b"},
		{"secrets", "", []string{"data"}, "a", "ZHJpZnQ=", "/data/b"},
		{"services", "", []string{"spec", "selector"}, "app", "drifted", "/spec/ports/1"},
		{"deployments", "apps", []string{"spec"}, "minReadySeconds", int64(7), "/spec/template/spec/containers/0/env/1"},
	}
}

func (k driftedKind) at(t *testing.T, ns string) dynamic.ResourceInterface {
	t.Helper()
	cfg := config(t)
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: k.group, Version: "v1", Resource: k.kind}).Namespace(ns)
}

// Whatever somebody does to an object is found by the metadata alone, put right where nothing stands against it, and found once. Each drift
// is done to every kind at once.
func TestDriftIsFound(t *testing.T) {
	t.Parallel()
	// Ours, so that every kind can drift in the same way.
	ours := strings.Replace(four, "  replicas: 0\n", "  replicas: 0\n  minReadySeconds: 1\n", 1)
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error
	}{
		{"a value changed by kubectl edit", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return change(ctx, at, k.drift, "kubectl-edit")
		}},
		{"a value changed and changed back", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			o, err := at.Get(ctx, "x", metav1.GetOptions{})
			if err != nil {
				return err
			}
			before, _, _ := unstructured.NestedFieldCopy(o.Object, append(slices.Clone(k.path), k.key)...)
			if err := change(ctx, at, k.drift, "hand"); err != nil {
				return err
			}
			return change(ctx, at, func(o *unstructured.Unstructured) error {
				return unstructured.SetNestedField(o.Object, before, append(slices.Clone(k.path), k.key)...)
			}, "hand")
		}},
		{"a value changed under our own name", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return change(ctx, at, k.drift, apply.DefaultFieldManager)
		}},
		{"an item removed by a JSON patch", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return patchJSON(ctx, at, `[{"op":"remove","path":"`+k.item+`"}]`)
		}},
		{"a label removed", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return patchJSON(ctx, at, `[{"op":"remove","path":"/metadata/labels/team"}]`)
		}},
		{"the mark removed", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return patchJSON(ctx, at, `[{"op":"remove","path":"/metadata/annotations/jr2.dev~1set"}]`)
		}},
		{"deleted", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return at.Delete(ctx, "x", metav1.DeleteOptions{})
		}},
		{"recreated by hand", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return remake(ctx, at, func(o *unstructured.Unstructured) error {
				o.SetAnnotations(nil)
				o.SetManagedFields(nil)
				return k.drift(o)
			})
		}},
		{"recreated from a whole copy", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return remake(ctx, at, k.drift)
		}},
		{"managedFields cleared and a value changed", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			if _, err := at.Patch(ctx, "x", types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`), metav1.PatchOptions{}); err != nil {
				return err
			}
			return change(ctx, at, k.drift, "hand")
		}},
		{"taken by force by another applier", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			o, err := at.Get(ctx, "x", metav1.GetOptions{})
			if err != nil {
				return err
			}
			theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}}
			theirs.SetName("x")
			if err := k.drift(theirs); err != nil {
				return err
			}
			_, err = at.Apply(ctx, "x", theirs, metav1.ApplyOptions{FieldManager: "other", Force: true})
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			s := set(t, ns, ours)
			mustApply(t, s, apply.Options{})
			for _, k := range driftedKinds() {
				if err := tt.do(t.Context(), k, k.at(t, ns)); err != nil {
					t.Fatal(k.kind, err)
				}
			}
			foreign := slices.Contains([]string{"the mark removed", "recreated by hand", "recreated from a whole copy"}, tt.name)
			if foreign { // somebody took it over, or made another one: that is not put right unasked
				_, err := apply.Apply(t.Context(), config(t), s, apply.Options{})
				if unowned := (*apply.UnownedError)(nil); !errors.As(err, &unowned) {
					t.Fatalf("without adoption: %v", err)
				}
			}
			opts := apply.Options{Adopt: foreign, Conflicts: apply.Conflicts{TakeFrom: []string{"kubectl-edit", "hand", "other", "before-first-apply", apply.DefaultFieldManager}}}
			looked := 0 // objects that the metadata did not show to be as asked
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch {
					looked++
				}
				return next.RoundTrip(r)
			})
			one := opts
			one.Concurrency = 1
			p, err := apply.MakePlan(t.Context(), cfg, s, one)
			if err != nil || looked < len(s.Objects) {
				t.Fatalf("%v, looked at %d of\n%s", err, looked, p)
			}
			out := mustApply(t, s, opts)
			if tt.name != "a value changed and changed back" && (out.Changed() != len(s.Objects) || p.Changes() != len(s.Objects)) {
				t.Errorf("%+v\n%s", out.Objects, p)
			}
			for _, verify := range []apply.Verification{apply.VerifyFull, apply.VerifyMetadata} {
				opts.Verify = verify
				if out := mustApply(t, s, opts); out.Changed() != 0 {
					t.Errorf("the next run (%q): %+v", verify, out.Objects)
				}
			}
			for _, k := range driftedKinds() {
				o, err := k.at(t, ns).Get(t.Context(), "x", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				was, is := want(t, s, k), o.Object
				a, _, _ := unstructured.NestedFieldNoCopy(was, append(slices.Clone(k.path), k.key)...)
				b, _, _ := unstructured.NestedFieldNoCopy(is, append(slices.Clone(k.path), k.key)...)
				if a != b || o.GetLabels()["team"] != "blue" || o.GetAnnotations()[apply.SetAnnotation] != s.ID() {
					t.Errorf("%s: %v, and it should be %v", k.kind, is, was)
				}
			}
		})
	}
}

func want(t *testing.T, s *apply.Set, k driftedKind) map[string]any {
	for _, o := range s.Objects {
		if strings.ToLower(o.GetKind())+"s" == k.kind {
			return o.Object
		}
	}
	t.Fatal(k.kind)
	return nil
}

// drift changes a value of ours.
func (k driftedKind) drift(o *unstructured.Unstructured) error {
	return unstructured.SetNestedField(o.Object, k.value, append(slices.Clone(k.path), k.key)...)
}

// change updates the object as kubectl edit does; the server's version is the one that was read.
func change(ctx context.Context, at dynamic.ResourceInterface, how func(*unstructured.Unstructured) error, manager string) error {
	for {
		o, err := at.Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := how(o); err != nil {
			return err
		}
		if _, err = at.Update(ctx, o, metav1.UpdateOptions{FieldManager: manager}); apply.Classify(err) != apply.ClassStale {
			return err
		}
	}
}

func patchJSON(ctx context.Context, at dynamic.ResourceInterface, patch string) error {
	_, err := at.Patch(ctx, "x", types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "hand"})
	return err
}

// remake deletes the object and creates it again, changed.
func remake(ctx context.Context, at dynamic.ResourceInterface, how func(*unstructured.Unstructured) error) error {
	o, err := at.Get(ctx, "x", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := at.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
		return err
	}
	o.SetUID("")
	o.SetResourceVersion("")
	unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
	if err := how(o); err != nil {
		return err
	}
	_, err = at.Create(ctx, o, metav1.CreateOptions{FieldManager: "hand"})
	return err
}

// What is not drift is not told as one, costs no write, and no look at the whole object.
func TestNoFalseAlarm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error
	}{
		{"defaulting", func(context.Context, driftedKind, dynamic.ResourceInterface) error { return nil }},
		{"status", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			status := map[string]string{"services": `{"conditions":[{"type":"Odd","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`, "deployments": `{"replicas":3,"conditions":[{"type":"Odd","status":"True"}]}`}[k.kind]
			if status == "" {
				return nil
			}
			_, err := at.Patch(ctx, "x", types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{FieldManager: "controller"}, "status")
			return err
		}},
		{"an applier that wants the same", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			o, err := at.Get(ctx, "x", metav1.GetOptions{})
			if err != nil {
				return err
			}
			theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}}
			theirs.SetName("x")
			theirs.SetLabels(map[string]string{"team": "blue"})
			_, err = at.Apply(ctx, "x", theirs, metav1.ApplyOptions{FieldManager: "other"})
			return err
		}},
		{"a write that changes nothing", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return change(ctx, at, func(*unstructured.Unstructured) error { return nil }, "hand")
		}},
		{"a label of somebody else", func(ctx context.Context, k driftedKind, at dynamic.ResourceInterface) error {
			return change(ctx, at, func(o *unstructured.Unstructured) error {
				return unstructured.SetNestedField(o.Object, "x", "metadata", "labels", "theirs")
			}, "hand")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			s := set(t, ns, four)
			mustApply(t, s, apply.Options{})
			for _, k := range driftedKinds() {
				if err := tt.do(t.Context(), k, k.at(t, ns)); err != nil {
					t.Fatal(k.kind, err)
				}
			}
			noAlarm(t, s)
		})
	}
}

// noAlarm applies and plans an equal set, by metadata and by dry run.
func noAlarm(t *testing.T, s *apply.Set) {
	t.Helper()
	for _, verify := range []apply.Verification{apply.VerifyMetadata, apply.VerifyFull} {
		var wrote atomic.Int64
		cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && !strings.Contains(r.URL.Path, "/jr2-inventory-") {
				wrote.Add(1)
			}
			return next.RoundTrip(r)
		})
		opts := apply.Options{Verify: verify, Prune: true}
		p, err := apply.MakePlan(t.Context(), cfg, s, opts)
		if err != nil || p.Changes() != 0 {
			t.Errorf("%q: %v\n%s", verify, err, p)
		}
		out, err := apply.Apply(t.Context(), cfg, s, opts)
		if err != nil || out.Changed() != 0 || verify == apply.VerifyFull && wrote.Load() != 0 {
			t.Errorf("%q: %v, %d writes, %+v", verify, err, wrote.Load(), out.Objects)
		}
	}
}

// An autoscaler that the set leaves the number to scales; kinds are rewritten through another version, as a server that was upgraded does.
func TestNoFalseAlarmOfOtherVersions(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	definition := strings.Replace(crd(group, "Gauge"), "versions: [", "versions: [{name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}, ", 1)
	s := set(t, ns, four+"\n---\n"+custom(group, "Gauge")+`
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: x, namespace: NS}
spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]}`)
	definitions, err := apply.NewSet("kinds", ns, objects(t, ns, definition)...)
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, definitions, apply.Options{Wait: true})
	mustApply(t, s, apply.Options{})
	noAlarm(t, s) // the number is the set's until somebody scales, and is not taken back to the default

	deployments := typed(t).AppsV1().Deployments(ns)
	if _, err := deployments.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale"); err != nil {
		t.Fatal(err)
	}
	old, err := typed(t).AutoscalingV1().HorizontalPodAutoscalers(ns).Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typed(t).AutoscalingV1().HorizontalPodAutoscalers(ns).Update(t.Context(), old, metav1.UpdateOptions{FieldManager: "migrator"}); err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer("name: v2, served: true, storage: false", "name: v2, served: true, storage: true", "name: v1, served: true, storage: true", "name: v1, served: true, storage: false").Replace(definition)
	if definitions, err = apply.NewSet("kinds", ns, objects(t, ns, moved)...); err != nil {
		t.Fatal(err)
	}
	mustApply(t, definitions, apply.Options{Wait: true})
	gauges := driftedKind{kind: "gauges", group: group}.at(t, ns)
	if err := change(t.Context(), gauges, func(*unstructured.Unstructured) error { return nil }, "migrator"); err != nil {
		t.Fatal(err)
	}
	noAlarm(t, s)
	if d, err := deployments.Get(t.Context(), "x", metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 3 {
		t.Errorf("%v, %v", d.Spec.Replicas, err)
	}
}

// The same manager writes twice within a second, by a run that was cut off before it could note it: nothing in the managed fields shows that.
func TestAWriteInTheSameSecondIsFound(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, strings.Replace(four, `{a: "1", b: "2"}`, `{a: "2", b: "2"}`, 1))
	for range 5 { // some of these are within one second
		mustApply(t, set(t, ns, four), apply.Options{})
		ctx, kill := context.WithCancel(t.Context())
		cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil || r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/configmaps/x") {
				return resp, err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			kill()
			return nil, errors.Join(err, resp.Body.Close(), context.Canceled)
		})
		if _, err := apply.Apply(ctx, cfg, s, apply.Options{}); err == nil {
			t.Fatal("it was not cut off")
		}
		kill()
		if out := mustApply(t, set(t, ns, four), apply.Options{}); out.Did(configMap(ns, "x")) != apply.Configured {
			t.Errorf("%+v", out.Objects)
		}
	}
}
