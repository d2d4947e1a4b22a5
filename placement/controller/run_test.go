package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestSandboxBecomesAPod: pod, Service and status of a Sandbox that nothing is in the way of, and what is left when it goes.
func TestSandboxBecomesAPod(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(nil, controller.Options{})
	s.create(sandbox("a"))
	box := s.phase("a", v1alpha1.SandboxReady)
	pod, service := new(corev1.Pod), new(corev1.Service)
	if !s.get("a", pod) || !s.get("a", service) {
		t.Fatal("no pod or no Service")
	}
	if !metav1.IsControlledBy(pod, box) || !metav1.IsControlledBy(service, box) {
		t.Error("pod or Service do not belong to the Sandbox")
	}
	status := box.Status
	if status.PodUID != pod.UID || status.PodRef.Name != "a" || status.ServiceRef.Name != "a" || status.Node != "roomy" || status.Endpoint != "http://a."+s.namespace+".svc:8080" {
		t.Errorf("status: %+v", status)
	}
	for kind, want := range map[string]metav1.ConditionStatus{v1alpha1.ConditionScheduled: metav1.ConditionTrue, v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionLost: "", v1alpha1.ConditionReposFresh: ""} {
		if got := condition(box, kind); got.Status != want {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if status.Harness == nil || len(status.Waiting) != 0 {
		t.Errorf("harness %+v, waiting %v", status.Harness, status.Waiting)
	}
	if err := s.Delete(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	followers.add(s.WithWatch, pod, service)
}
