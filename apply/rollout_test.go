package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// workload is a Deployment or the like, with fields added to its pod spec.
func workload(kind, pod string) string {
	extra := "replicas: 1"
	if kind == "DaemonSet" {
		extra = "minReadySeconds: 0"
	}
	return `apiVersion: apps/v1
kind: ` + kind + `
metadata: {name: web, namespace: NS}
spec:
  ` + extra + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {` + pod + `}`
}

const plainContainer = `containers: [{name: web, image: "registry.example/web:1"}]`

func TestWaitRollout(t *testing.T) {
	t.Parallel()
	for kind, pod := range map[string]string{"Deployment": plainContainer, "StatefulSet": plainContainer, "DaemonSet": plainContainer, "DaemonSet/no node": `nodeSelector: {pool: none}, ` + plainContainer} {
		t.Run(kind, func(t *testing.T) {
			ns := newNamespace(t, nil)
			kind, _, none := strings.Cut(kind, "/")
			mustApply(t, set(t, ns, workload(kind, pod)), apply.Options{})
			status, err := apply.WaitRollout(t.Context(), typed(t), apply.Workload{Kind: kind, Namespace: ns, Name: "web"}, apply.RolloutOptions{})
			if err != nil || !status.Done {
				t.Fatalf("%+v, %v", status, err)
			}
			layer := apply.Layer{Name: "web", Namespace: ns, Selector: "app=web", Container: "web", Image: "registry.example/web:1"}
			got, err := apply.Verify(t.Context(), typed(t), layer)
			if want := map[bool]int{true: 0, false: 1}[none]; err != nil || got.Pods != want {
				t.Errorf("%+v, %v", got, err)
			}
			layer.Image = "registry.example/web:2"
			_, err = apply.Verify(t.Context(), typed(t), layer)
			var stale *apply.StaleImageError
			if errors.As(err, &stale) == none {
				t.Errorf("another image: %v", err)
			}
			if stale != nil && (stale.Images[0] != "registry.example/web:1" || !strings.Contains(err.Error(), "not registry.example/web:2")) {
				t.Errorf("another image: %v", err)
			}
		})
	}
}

// Each failure shows its evidence, is named, and ends with the verdict.
func TestRolloutErrors(t *testing.T) {
	quota := `apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: NS}
spec: {hard: {`
	limits := `apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: NS}
spec: {limits: [{type: Container, `
	for _, tt := range []struct {
		name, kind, pod, before string
		labels                  map[string]string
		diagnosis               string
		evidence                []string
	}{
		{name: "priority class", kind: "Deployment", pod: `priorityClassName: platform-critical, ` + plainContainer, diagnosis: apply.DiagnosedPriorityClass,
			evidence: []string{"event of ReplicaSet web-", "FailedCreate", "no PriorityClass with name platform-critical was found", `the cluster has no PriorityClass "platform-critical"`, "note: no pod: the ReplicaSet made none"}},
		{name: "priority class of a set", kind: "StatefulSet", pod: `priorityClassName: missing, ` + plainContainer, diagnosis: apply.DiagnosedPriorityClass, evidence: []string{"event of StatefulSet web"}},
		{name: "quota full", kind: "Deployment", pod: plainContainer, before: quota + `pods: 0}}`, diagnosis: apply.DiagnosedQuota, evidence: []string{"exceeded quota: q", "one pod needs more than q allows"}},
		{name: "quota wants requests", kind: "DaemonSet", pod: plainContainer, before: quota + `requests.cpu: 1}}`, diagnosis: apply.DiagnosedQuota, evidence: []string{"must specify requests.cpu"}},
		{name: "limit range with a default", kind: "Deployment", pod: `containers: [{name: web, image: "registry.example/web:1", resources: {requests: {cpu: 500m}}}]`, before: limits + `default: {cpu: 100m}}]}`,
			diagnosis: apply.DiagnosedLimitRange, evidence: []string{"must be less than or equal to cpu limit"}},
		{name: "limit range with a maximum", kind: "Deployment", pod: `containers: [{name: web, image: "registry.example/web:1", resources: {limits: {cpu: 500m}}}]`, before: limits + `max: {cpu: 100m}}]}`,
			diagnosis: apply.DiagnosedLimitRange, evidence: []string{"maximum cpu usage per Container"}},
		{name: "pod security", kind: "Deployment", pod: plainContainer, labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, diagnosis: apply.DiagnosedPodSecurity, evidence: []string{`violates PodSecurity "restricted`}},
		{name: "account", kind: "Deployment", pod: `serviceAccountName: nobody, ` + plainContainer, diagnosis: apply.DiagnosedAccount, evidence: []string{"error looking up service account"}},
		{name: "no node", kind: "Deployment", pod: `nodeSelector: {pool: agents}, ` + plainContainer, diagnosis: apply.DiagnosedUnschedulable, evidence: []string{"pod web-", ": Pending", "Unschedulable: 0/1 nodes are available", "image registry.example/web:1"}},
		{name: "pull", kind: "Deployment", pod: `containers: [{name: web, image: "` + devcluster.TroubleImage(devcluster.ImagePullBackOff) + `"}]`, diagnosis: apply.DiagnosedImagePull, evidence: []string{"container web: ImagePullBackOff", "it resolves to trouble.devcluster", "on node node-1 (amd64)"}},
		{name: "crash", kind: "StatefulSet", pod: `containers: [{name: web, image: "` + devcluster.TroubleImage(devcluster.CrashLoopBackOff) + `"}]`, diagnosis: apply.DiagnosedCrashLoop, evidence: []string{"container web: CrashLoopBackOff, 3 restarts", "last exit: Error (exit code 1)", "kubectl logs web-0 -c web --previous"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, tt.labels)
			text := workload(tt.kind, tt.pod)
			if tt.before != "" {
				text = tt.before + "\n---\n" + text
			}
			mustApply(t, set(t, ns, text), apply.Options{})
			w := apply.Workload{Kind: tt.kind, Namespace: ns, Name: "web"}
			_, err := apply.WaitRollout(t.Context(), typed(t), w, apply.RolloutOptions{Timeout: 6 * time.Second})
			var failed *apply.RolloutError
			if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			if len(failed.Diagnoses) != 1 || failed.Diagnoses[0].Name != tt.diagnosis {
				t.Errorf("diagnoses %+v", failed.Diagnoses)
			}
			parts := strings.Split(err.Error(), "\n\n")
			if len(parts) != 4 || parts[0] != "the rollout of "+w.String()+" did not complete" || !strings.HasPrefix(parts[3], "timed out after 6s: ") {
				t.Errorf("text:\n%s", err)
			}
			for _, want := range tt.evidence {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%s", want, err)
				}
			}
		})
	}
}

// A Deployment that gives up is a failure at once, not at the timeout.
func TestWaitRolloutEndsWhenTheDeploymentGivesUp(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	text := strings.Replace(workload("Deployment", `nodeSelector: {pool: none}, `+plainContainer), "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 2", 1)
	mustApply(t, set(t, ns, text), apply.Options{})
	_, err := apply.WaitRollout(t.Context(), typed(t), apply.Workload{Kind: "Deployment", Namespace: ns, Name: "web"}, apply.RolloutOptions{Timeout: 2 * time.Minute})
	var failed *apply.RolloutError
	if !errors.As(err, &failed) || !strings.Contains(failed.Verdict, "exceeded its progress deadline") || failed.Err != nil {
		t.Errorf("got %v", err)
	}
}

func TestWaitRolloutOfNothing(t *testing.T) {
	ns := newNamespace(t, nil)
	_, err := apply.WaitRollout(t.Context(), typed(t), apply.Workload{Kind: "Deployment", Namespace: ns, Name: "web"}, apply.RolloutOptions{})
	if err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got %v", err)
	}
}
