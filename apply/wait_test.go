package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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

const migration = `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: NS}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "IMAGE"}]}}`

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

// podLog sets what all pods of the cluster said; it stays, because tests run side by side.
func podLog(t *testing.T) {
	t.Helper()
	if err := shared.SetPodLog("connecting\nrelation \"users\" does not exist\n"); err != nil {
		t.Fatal(err)
	}
}

// failPod waits for the Job's pod to run and lets it fail.
func failPod(t *testing.T, ns, selector string) {
	t.Helper()
	pods := typed(t).CoreV1().Pods(ns)
	stream, err := pods.Watch(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == watch.Deleted || p.Status.Phase != corev1.PodRunning {
			continue
		}
		patch := `{"status": {"phase": "Failed", "containerStatuses": [{"name": "migrate", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
			"state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}}`
		if _, err := pods.Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		return
	}
}

// A Job that fails brings the log of its pod, and does not wait for the others of the wave.
func TestWaitReadyOfAJobThatFails(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	podLog(t)
	refs := applied(t, ns, strings.Replace(migration, "IMAGE", devcluster.TroubleImage(devcluster.NotReady), 1)+"\n---\n"+
		workload("Deployment", `nodeSelector: {pool: none}, `+plainContainer))
	wait, _ := waiting(t, refs, apply.WaitOptions{})
	failPod(t, ns, "batch.kubernetes.io/job-name=migrate")
	err := wait()
	var failed *apply.UnreadyError
	if !errors.As(err, &failed) || failed.Ref.Kind != "Job" || failed.Pending || !failed.Status.Failed {
		t.Fatalf("got %v", err)
	}
	if pods := failed.Evidence.Pods; len(pods) != 1 || len(pods[0].Log) != 2 || pods[0].LogOf != "migrate" {
		t.Errorf("evidence %+v", failed.Evidence)
	}
	for _, want := range []string{"Job.batch " + ns + "/migrate did not succeed\n\npod migrate-", `  | relation "users" does not exist`, "container migrate: Error (exit code 3)",
		`job "migrate" failed: BackoffLimitExceeded`, "Deployment.apps " + ns + "/web is not ready yet: 0/"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%s", want, err)
		}
	}
}

// Pods that are refused for good fail their workload at once, with the diagnosis.
func TestWaitReadyOfPodsThatAreRefused(t *testing.T) {
	quota := `apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: NS}
spec: {hard: {HARD}}
---
`
	for _, tt := range []struct {
		name, kind, pod, before string
		labels                  map[string]string
		diagnosis               string
	}{
		{name: "pod security", kind: "Deployment", pod: plainContainer, labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, diagnosis: apply.DiagnosedPodSecurity},
		{name: "pod security of a set", kind: "StatefulSet", pod: plainContainer, labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, diagnosis: apply.DiagnosedPodSecurity},
		{name: "priority class", kind: "DaemonSet", pod: `priorityClassName: missing, ` + plainContainer, diagnosis: apply.DiagnosedPriorityClass},
		{name: "quota too small", kind: "Deployment", pod: plainContainer, before: strings.Replace(quota, "HARD", "pods: 0", 1), diagnosis: apply.DiagnosedQuota},
		{name: "quota wants requests", kind: "Job", pod: plainContainer, before: strings.Replace(quota, "HARD", "requests.cpu: 1", 1), diagnosis: apply.DiagnosedQuota},
		{name: "account", kind: "Deployment", pod: `serviceAccountName: nobody, ` + plainContainer, diagnosis: apply.DiagnosedAccount},
		{name: "limit range", kind: "Deployment", pod: `containers: [{name: web, image: "registry.example/web:1", resources: {limits: {cpu: 500m}}}]`,
			before: "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: NS}\nspec: {limits: [{type: Container, max: {cpu: 100m}}]}\n---\n", diagnosis: apply.DiagnosedLimitRange},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, tt.labels)
			text := workload(tt.kind, tt.pod)
			if tt.kind == "Job" {
				text = strings.Replace(migration, "IMAGE", "x", 1)
			}
			refs := applied(t, ns, tt.before+text)
			wait, _ := waiting(t, refs, apply.WaitOptions{Grace: 2 * time.Second})
			err := wait()
			var failed *apply.UnreadyError
			if !errors.As(err, &failed) || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			if len(failed.Diagnoses) != 1 || failed.Diagnoses[0].Name != tt.diagnosis || !strings.Contains(failed.Verdict, "its pods are refused: ") {
				t.Errorf("%+v\n%s", failed.Diagnoses, err)
			}
		})
	}
}

// A full quota, a node that is missing and a gate are waits without an end of ours, and what they wait for ends them.
func TestWaitReadyWaitsForWhatOthersGive(t *testing.T) {
	quota := func(pods int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: NS}\nspec: {hard: {pods: %d}}\n", pods)
	}
	taken := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: NS}\nspec: {" + plainContainer + "}\n"
	for _, tt := range []struct {
		name, before, text string
		words              string
		give               func(t *testing.T, ns string)
	}{
		{"quota", quota(1) + taken, workload("Deployment", plainContainer), "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1", func(t *testing.T, ns string) {
			mustApply(t, set(t, ns, quota(2)), apply.Options{Shared: true})
		}},
		{"quota of a set", quota(1) + taken, workload("StatefulSet", plainContainer), "exceeded quota: q", func(t *testing.T, ns string) {
			mustApply(t, set(t, ns, quota(2)), apply.Options{Shared: true})
		}},
		{"node", "", workload("Deployment", `nodeSelector: {pool: NS}, `+plainContainer), "0/", giveNode},
		{"late node", "", strings.Replace(workload("Deployment", `nodeSelector: {pool: NS}, `+plainContainer), "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 1", 1), "0/", func(t *testing.T, ns string) {
			pastDeadline(t, ns)
			giveNode(t, ns)
		}},
		{"gate", "", `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: NS}
spec: {schedulingGates: [{name: example.com/admission}], ` + plainContainer + `}`, "gate example.com/admission", openGate},
		{"gate of a set", "", workload("StatefulSet", `schedulingGates: [{name: example.com/admission}], `+plainContainer), "gate example.com/admission", openGate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			if tt.before != "" {
				mustApply(t, set(t, ns, tt.before), apply.Options{Shared: true})
			}
			refs := applied(t, ns, tt.text)
			wait, h := waiting(t, refs, apply.WaitOptions{Timeout: 10 * time.Second})
			if w := h.waits(t); !strings.Contains(w.Reason, tt.words) || w.Since.IsZero() || w.Ref.Name != "web" {
				t.Errorf("%+v", w)
			}
			tt.give(t, ns)
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func giveNode(t *testing.T, ns string) {
	if err := shared.AddNode(t.Context(), devcluster.Node{Name: ns, Labels: map[string]string{"pool": ns}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.RemoveNode(context.Background(), ns) })
}

// pastDeadline waits until the Deployment's controller gave up.
func pastDeadline(t *testing.T, ns string) {
	stream, err := typed(t).AppsV1().Deployments(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		if d, ok := e.Object.(*appsv1.Deployment); ok && apply.Ready(d).Failed {
			return
		}
	}
}

func openGate(t *testing.T, ns string) {
	pods := typed(t).CoreV1().Pods(ns)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		t.Fatal(len(list.Items), err)
	}
	for _, p := range list.Items {
		if _, err := pods.Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"spec": {"schedulingGates": null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A caller may bound such a wait, and the time in it does not count for the Timeout.
func TestWaitReadyBoundsAWait(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	refs := applied(t, ns, workload("Deployment", `nodeSelector: {pool: none}, `+plainContainer))
	for waiting, verdict := range map[time.Duration]string{2500 * time.Millisecond: "still waits after 2.5s: 0/", -1: "it waits on a node: 0/"} {
		err := apply.WaitReady(t.Context(), config(t), refs, apply.WaitOptions{Timeout: 2 * time.Second, Waiting: waiting})
		var failed *apply.UnreadyError
		if !errors.As(err, &failed) || failed.Status.On != apply.OnNode || !strings.HasPrefix(failed.Verdict, verdict) || errors.Is(err, context.DeadlineExceeded) != (waiting > 0) {
			t.Errorf("%s: %v", waiting, err)
		}
		if !strings.HasPrefix(err.Error(), "the rollout of Deployment "+ns+"/web did not complete\n\npod web-") {
			t.Errorf("%s", err)
		}
	}
}

// Field case F16: a Deployment of one replica whose new pod needs the room of its old one is in a deadlock.
func TestWaitReadyNamesTheDeadlockOfASurge(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	pod := func(image string) string {
		return workload("Deployment", `containers: [{name: web, image: "`+image+`", resources: {requests: {cpu: 600m}}}]`)
	}
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: NS}\nspec: {hard: {requests.cpu: 1}}\n---\n"
	refs := applied(t, ns, quota+pod("registry.example/web:1"))
	wait, _ := waiting(t, refs, apply.WaitOptions{})
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	applied(t, ns, quota+pod("registry.example/web:2"))
	wait, _ = waiting(t, refs, apply.WaitOptions{})
	err := wait()
	var failed *apply.UnreadyError
	if !errors.As(err, &failed) || len(failed.Diagnoses) != 1 || failed.Diagnoses[0].Name != apply.DiagnosedDeadlock {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"requests.cpu 600m", "600m of the 1 that q allows", "set maxSurge to 0 and maxUnavailable to 1, or raise the quota q"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%s", want, err)
		}
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

// Field case F04 on a server: a Job that is collected the moment it is complete succeeded; one that a person deletes did not.
func TestWaitReadyOfAJobThatIsCollected(t *testing.T) {
	for name, collected := range map[string]bool{"collected": true, "deleted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			text := strings.NewReplacer("IMAGE", "registry.example/migrate:1", "backoffLimit: 0", "backoffLimit: 0\n  ttlSecondsAfterFinished: 0",
				"{spec: {", "{spec: {schedulingGates: [{name: example.com/admission}], ").Replace(migration)
			refs := applied(t, ns, text)
			wait, h := waiting(t, refs, apply.WaitOptions{})
			if w := h.waits(t); w.Reason != "gate example.com/admission" {
				t.Errorf("%+v", w)
			}
			if collected {
				openGate(t, ns)
				if err := wait(); err != nil {
					t.Fatal(err)
				}
				return
			}
			background := metav1.DeletePropagationBackground
			if err := typed(t).BatchV1().Jobs(ns).Delete(t.Context(), "migrate", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				t.Fatal(err)
			}
			if err := wait(); err == nil || !strings.HasSuffix(err.Error(), "it was removed before it finished") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A Job that takes its pods away when it fails still brings their log.
func TestWaitReadyKeepsTheLogOfAJobsLastFailure(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	podLog(t)
	refs := applied(t, ns, strings.NewReplacer("IMAGE", devcluster.TroubleImage(devcluster.CrashLoopBackOff), "Never", "OnFailure").Replace(migration))
	read := make(chan struct{}, 10)
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if strings.HasSuffix(r.URL.Path, "/log") && err == nil && resp.StatusCode == http.StatusOK {
			read <- struct{}{}
		}
		return resp, err
	})
	done := make(chan error, 1)
	go func() { done <- apply.WaitReady(t.Context(), cfg, refs, apply.WaitOptions{}) }()
	<-read
	now := int64(0)
	err := typed(t).CoreV1().Pods(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = <-done
	if err == nil || !strings.Contains(err.Error(), `  | relation "users" does not exist`) || !strings.Contains(err.Error(), "BackoffLimitExceeded") {
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
