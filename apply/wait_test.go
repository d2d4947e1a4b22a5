package apply_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// heard collects the events of a wait.
type heard struct {
	mu     sync.Mutex
	events []apply.Event
	signal chan struct{} // one for each Waiting
}

func listen() *heard { return &heard{signal: make(chan struct{}, 100)} }

func (h *heard) hear(e apply.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	if _, ok := e.(apply.Waiting); ok {
		h.signal <- struct{}{}
	}
}

// waits returns the first Waiting, and waits for it.
func (h *heard) waits(t *testing.T) apply.Waiting {
	t.Helper()
	select {
	case <-h.signal:
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing waited; events: %+v", h.events)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if w, ok := e.(apply.Waiting); ok {
			return w
		}
	}
	return apply.Waiting{}
}

// applied applies the objects and returns their refs.
func applied(t *testing.T, ns, text string) []apply.Ref {
	t.Helper()
	s := set(t, ns, text)
	mustApply(t, s, apply.Options{})
	var refs []apply.Ref
	for _, o := range s.Objects {
		refs = append(refs, apply.RefOf(o))
	}
	return refs
}

// waiting waits for objects in the background.
func waiting(t *testing.T, refs []apply.Ref, opts apply.WaitOptions) (wait func() error, h *heard) {
	t.Helper()
	h = listen()
	opts.Events = h.hear
	done := make(chan error, 1)
	go func() { done <- apply.WaitReady(t.Context(), config(t), refs, opts) }()
	return func() error {
		t.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("the wait does not end")
			return nil
		}
	}, h
}

// A wave of many kinds is ready; what has no status is not looked at.
func TestWaitReady(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	late := `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NS-late}
provisioner: nobody.example
volumeBindingMode: WaitForFirstConsumer
---
`
	claim := func(name, class string) string {
		return `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ` + name + `, namespace: NS}
spec: {storageClassName: ` + class + `, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`
	}
	refs := applied(t, ns, late+workload("Deployment", plainContainer)+"\n---\n"+strings.Replace(migration, "IMAGE", "registry.example/migrate:1", 1)+`
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: single, namespace: NS}
spec: {`+plainContainer+`}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: NS}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: NS}
spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: NS}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}`+claim("now", devcluster.StorageClass)+claim("late", ns+"-late"))
	t.Cleanup(func() {
		_ = typed(t).StorageV1().StorageClasses().Delete(context.Background(), ns+"-late", metav1.DeleteOptions{})
	})
	wait, h := waiting(t, append(refs, refs...), apply.WaitOptions{Timeout: 25 * time.Second})
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	note := ""
	for _, e := range h.events {
		if e, ok := e.(apply.Unready); ok {
			told[e.Ref.Kind] = e.Status.Done
			if e.Ref.Name == "late" {
				note = e.Status.Note
			}
		}
	}
	for kind, done := range told {
		if !done {
			t.Errorf("the last word about the %s: it is not ready", kind)
		}
	}
	if note != `the class "`+ns+`-late" binds it when the first pod uses it` {
		t.Errorf("the note of the claim: %q", note)
	}
	if told["StorageClass"] || told["Ingress"] {
		t.Errorf("%+v", told)
	}
}

// Custom resources go by their conditions, or by the caller's reader.
func TestWaitReadyOfACustomResource(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	mustApply(t, set(t, ns, strings.NewReplacer("served: true", "served: true, subresources: {status: {}}",
		"type: object, properties: {spec", "type: object, properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}, spec").Replace(crd(group, "Thing"))), apply.Options{Shared: true})
	refs := append(applied(t, ns, custom(group, "Thing")), apply.Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "things." + group})
	if err := apply.WaitReady(t.Context(), config(t), refs, apply.WaitOptions{}); err != nil {
		t.Fatal("without a status: ", err)
	}
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	status := func(text string) {
		t.Helper()
		_, err := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).Namespace(ns).
			Patch(t.Context(), "x", types.MergePatchType, []byte(`{"status": `+text+`}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	status(`{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "False", "reason": "NoDisk", "message": "no disk yet"}]}`)
	told := make(chan apply.Unready, 10)
	done := make(chan error, 1)
	go func() {
		done <- apply.WaitReady(t.Context(), config(t), refs, apply.WaitOptions{Events: func(e apply.Event) {
			if e, ok := e.(apply.Unready); ok {
				told <- e
			}
		}})
	}()
	if e := <-told; e.Status.Message != "its condition Ready is False: NoDisk: no disk yet" {
		t.Errorf("%+v", e)
	}
	status(`{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	reader := func(u *unstructured.Unstructured) (apply.Status, bool) {
		return apply.Status{Failed: true, Message: "the reader says no"}, u.GetKind() == "Thing"
	}
	err = apply.WaitReady(t.Context(), config(t), refs, apply.WaitOptions{Readers: []apply.Reader{reader}})
	if err == nil || err.Error() != "Thing."+group+" "+ns+"/x is not ready\n\nthe reader says no" {
		t.Errorf("got %v", err)
	}
}

// What is not there, and what goes away, is an error that says so.
func TestWaitReadyOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	ref := apply.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: ns, Name: "none"}
	err := apply.WaitReady(t.Context(), config(t), []apply.Ref{ref}, apply.WaitOptions{})
	if err == nil || !strings.HasSuffix(err.Error(), "it does not exist") {
		t.Errorf("got %v", err)
	}
	refs := applied(t, ns, workload("Deployment", `nodeSelector: {pool: none}, `+plainContainer))
	wait, h := waiting(t, refs, apply.WaitOptions{})
	h.waits(t)
	if err := typed(t).AppsV1().Deployments(ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err == nil || !strings.HasSuffix(err.Error(), "it was deleted while it was waited for") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller left"))
	if err := apply.WaitReady(ctx, config(t), []apply.Ref{ref}, apply.WaitOptions{}); err == nil || !strings.Contains(err.Error(), "the caller left") {
		t.Errorf("got %v", err)
	}
}

// A caller who may read objects, but not list them, can wait for them too.
func TestWaitReadyWithFewRights(t *testing.T) {
	t.Parallel()
	cfg, err := shared.ConfigFor("tenant")
	if err != nil {
		t.Fatal(err)
	}
	const ns = "t-tenant"
	refs := applied(t, ns, "apiVersion: v1\nkind: Service\nmetadata: {name: waited, namespace: NS}\nspec: {ports: [{port: 80}]}")
	if err := apply.WaitReady(t.Context(), cfg, refs, apply.WaitOptions{}); err != nil {
		t.Error(err)
	}
	policy := apply.Ref{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy", Namespace: ns, Name: "any"}
	other := func(*unstructured.Unstructured) (apply.Status, bool) { return apply.Status{}, false }
	if err := apply.WaitReady(t.Context(), cfg, []apply.Ref{policy}, apply.WaitOptions{Readers: []apply.Reader{other}}); err != nil {
		t.Errorf("a kind without a status that may not be read: %v", err)
	}
	for want, ref := range map[string]apply.Ref{
		"it does not exist": {Version: "v1", Kind: "Service", Namespace: ns, Name: "none"},
		"cannot get":        {Version: "v1", Kind: "Pod", Namespace: ns, Name: "none"},
		"no matches for":    {Group: "nobody.example", Version: "v1", Kind: "Thing", Namespace: ns, Name: "none"},
	} {
		if err := apply.WaitReady(t.Context(), cfg, []apply.Ref{ref}, apply.WaitOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}
