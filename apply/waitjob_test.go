package apply_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

const migration = `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: NS}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "IMAGE"}]}}`

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

// Field case F04 on a server: a Job that is collected the moment it is complete succeeded; one that a person deletes did not.
func TestWaitReadyOfAJobThatIsCollected(t *testing.T) {
	t.Parallel()
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
