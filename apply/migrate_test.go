package apply_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"jr2.dev/jr2/apply"
)

// clientSideApply makes the objects as kubectl apply does: created under that manager, with the annotation that holds what was sent.
func clientSideApply(t *testing.T, manager, ns, text string) {
	t.Helper()
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, ns, text) {
		u := o.(*unstructured.Unstructured)
		raw, err := utiljson.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(raw)})
		r := schema.GroupVersionResource{Group: u.GroupVersionKind().Group, Version: u.GroupVersionKind().Version, Resource: strings.ToLower(u.GetKind()) + "s"}
		if _, err := client.Resource(r).Namespace(ns).Create(t.Context(), u, metav1.CreateOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
}

const byKubectl = `apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: NS}
data: {a: "1", b: "2"}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS, labels: {gone: "yes"}}
spec: {selector: {app: web}, sessionAffinity: ClientIP, ports: [{name: http, port: 80}, {name: admin, port: 81}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 0
  minReadySeconds: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1", env: [{name: OLD, value: x}]}, {name: side, image: "registry.example/side:1"}]}`

const byUs = `apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: NS}
data: {a: "9"}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:2"}]}`

// An object that kubectl apply made is taken over once: what the set leaves out goes away, nothing conflicts with the tool that made it, what
// others set stays, and the plan says all of it before.
func TestClientSideApplyIsMigrated(t *testing.T) {
	t.Parallel()
	for _, manager := range []string{"kubectl-client-side-apply", "an-old-kubectl"} {
		t.Run(manager, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			clientSideApply(t, manager, ns, byKubectl)
			if _, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), "conf", types.MergePatchType, []byte(`{"data":{"theirs":"x"}}`), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
				t.Fatal(err)
			}
			s := set(t, ns, byUs)
			p := mustPlan(t, s, apply.Options{Adopt: true})
			text := p.String()
			for _, want := range []string{"adopt       ConfigMap " + ns + "/conf", `data.a: "1" -> "9"`, `data.b: "2" -> (absent)`, `metadata.annotations["jr2.dev/set"]: (absent) -> `,
				"metadata.labels.gone: ", `spec.ports[name="admin"]: `, `spec.sessionAffinity: "ClientIP" -> "None"`, `spec.minReadySeconds: 7 -> (absent)`,
				`containers[name="side"]: `, `containers[name="web"].env: `, "3 to adopt\n"} {
				if !strings.Contains(strings.ReplaceAll(text, "metadata.labels: ", "metadata.labels.gone: "), want) {
					t.Errorf("the plan lacks %s\n%s", want, text)
				}
			}
			dry := mustApply(t, s, apply.Options{DryRun: true, Adopt: true})
			out, err := p.Apply(t.Context(), config(t))
			if err != nil || out.Count(apply.Configured) != 3 || dry.Count(apply.Configured) != 3 {
				t.Fatalf("%v\n%+v\n%+v\n%s", err, out.Objects, dry.Objects, text)
			}
			conf, err := typed(t).CoreV1().ConfigMaps(ns).Get(t.Context(), "conf", metav1.GetOptions{})
			if err != nil || conf.Data["a"] != "9" || conf.Data["theirs"] != "x" || len(conf.Data) != 2 || len(conf.Annotations) != 1 {
				t.Errorf("%+v, %v", conf, err)
			}
			web, err := typed(t).CoreV1().Services(ns).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || len(web.Labels) != 0 || len(web.Spec.Ports) != 1 || web.Spec.SessionAffinity != "None" {
				t.Errorf("%+v, %v", web, err)
			}
			d, err := typed(t).AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || d.Spec.MinReadySeconds != 0 || len(d.Spec.Template.Spec.Containers) != 1 || len(d.Spec.Template.Spec.Containers[0].Env) != 0 {
				t.Errorf("%+v, %v", d.Spec, err)
			}
			for _, o := range []metav1.Object{conf, web, d} {
				if slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager }) {
					t.Errorf("%s: %s owns fields still", o.GetName(), manager)
				}
			}
			if again := mustApply(t, s, apply.Options{}); again.Changed() != 0 {
				t.Errorf("the next run: %+v", again.Objects)
			}
		})
	}
}

// What is not client-side apply's is not migrated: a person's edit is a conflict. What the set has already is not either: kubectl apply that
// comes later is a conflict. And the caller may have none of it.
func TestWhatIsNotMigrated(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	edit := func(name, manager string) {
		t.Helper()
		if _, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":{"a":"3"}}`), metav1.PatchOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	clientSideApply(t, "kubectl-client-side-apply", ns, strings.Split(byKubectl, "\n---\n")[0])
	s := set(t, ns, strings.Split(byUs, "\n---\n")[0])
	conflict := func(name string, opts apply.Options, manager string) {
		t.Helper()
		for _, err := range []error{mustPlan(t, s, opts).Err(), func() error { _, err := apply.Apply(t.Context(), config(t), s, opts); return err }()} {
			if apply.Classify(err) != apply.ClassConflict || !strings.Contains(err.Error(), manager) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	conflict("none to migrate", apply.Options{Adopt: true, Conflicts: apply.Conflicts{Migrate: []string{}}}, "kubectl-client-side-apply")
	edit("conf", "kubectl-edit")
	conflict("a person's edit", apply.Options{Adopt: true}, "kubectl-edit")
	mustApply(t, s, apply.Options{Adopt: true, Conflicts: apply.Conflicts{TakeFrom: []string{"kubectl-edit"}}})
	edit("conf", "kubectl-client-side-apply")
	conflict("later", apply.Options{}, "kubectl-client-side-apply")
}

// Somebody writes the object between the look and the migration: what they own stays theirs.
func TestMigrationIsSafeAgainstARace(t *testing.T) {
	t.Parallel()
	for _, planned := range []bool{false, true} {
		ns := newNamespace(t, nil)
		clientSideApply(t, "kubectl-client-side-apply", ns, strings.Split(byKubectl, "\n---\n")[0])
		s := set(t, ns, strings.Split(byUs, "\n---\n")[0])
		var once atomic.Bool
		cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Header.Get("Content-Type") == string(types.JSONPatchType) && once.CompareAndSwap(false, true) {
				if _, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), "conf", types.MergePatchType, []byte(`{"data":{"b":"theirs"}}`), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
					t.Error(err)
				}
			}
			return next.RoundTrip(r)
		})
		var err error
		if planned {
			_, err = mustPlan(t, s, apply.Options{Adopt: true}).Apply(t.Context(), cfg)
		} else {
			_, err = apply.Apply(t.Context(), cfg, s, apply.Options{Adopt: true})
		}
		if moved := new(apply.MovedError); planned {
			if !asMoved(err, &moved) {
				t.Errorf("planned: %v", err)
			}
			continue
		}
		conf, getErr := typed(t).CoreV1().ConfigMaps(ns).Get(t.Context(), "conf", metav1.GetOptions{})
		if err != nil || getErr != nil || !once.Load() || conf.Data["a"] != "9" || conf.Data["b"] != "theirs" {
			t.Errorf("%v, %v, %+v", err, getErr, conf)
		}
	}
}
