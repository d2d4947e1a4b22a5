package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// Pods that are refused for good fail their workload at once, with the diagnosis.
func TestWaitReadyOfPodsThatAreRefused(t *testing.T) {
	t.Parallel()
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
			if tt.before != "" {
				first := set(t, ns, strings.TrimSuffix(tt.before, "---\n"))
				first.Name = "before"
				mustApply(t, first, apply.Options{})
			}
			if strings.Contains(tt.before, "ResourceQuota") {
				waitQuota(t, ns)
			}
			refs := applied(t, ns, text)
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
	t.Parallel()
	quota := func(pods int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: NS}\nspec: {hard: {pods: %d}}\n", pods)
	}
	const taken = "apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: NS}\nspec: {" + plainContainer + "}\n"
	for _, tt := range []struct {
		name, quota, text string
		words             string
		give              func(t *testing.T, ns string)
	}{
		{"quota", quota(1), workload("Deployment", plainContainer), "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1", func(t *testing.T, ns string) {
			mustApply(t, set(t, ns, quota(2)), apply.Options{Shared: true})
		}},
		{"quota of a set", quota(1), workload("StatefulSet", plainContainer), "exceeded quota: q", func(t *testing.T, ns string) {
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
			if tt.quota != "" {
				mustApply(t, set(t, ns, tt.quota), apply.Options{Shared: true})
				waitQuota(t, ns) // before that it lets everything pass
				mustApply(t, set(t, ns, taken), apply.Options{Shared: true})
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
