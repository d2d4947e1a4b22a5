package apply_test

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

const scaler = `
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: NS}
spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}`

// Field case F18: replicas are sent when the object is made, and are the autoscaler's from then on, be it of the set or of the cluster.
func TestReplicasOfAnAutoscalerAreLeftAlone(t *testing.T) {
	two := strings.Replace(stack, "replicas: 1", "replicas: 2", 1)
	for _, ofTheSet := range []bool{true, false} {
		ns := newNamespace(t, nil)
		text := two
		if ofTheSet {
			text += scaler
		}
		deployments := typed(t).AppsV1().Deployments(ns)
		want := func(when string, n int32) {
			t.Helper()
			d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || *d.Spec.Replicas != n {
				t.Errorf("of the set %t, %s: %d replicas, %v", ofTheSet, when, *d.Spec.Replicas, err)
			}
		}
		nothing := func(when, text string) {
			t.Helper()
			if p := mustPlan(t, set(t, ns, text), apply.Options{}); p.Changes() != 0 || p.Err() != nil {
				t.Errorf("of the set %t, %s: %s", ofTheSet, when, p)
			}
			if out := mustApply(t, set(t, ns, text), apply.Options{}); out.Changed() != 0 {
				t.Errorf("of the set %t, %s: %+v", ofTheSet, when, out.Objects)
			}
		}
		mustApply(t, set(t, ns, text), apply.Options{})
		want("made", 2)
		if !ofTheSet {
			other, err := apply.NewSet("scaler", ns, objects(t, ns, strings.TrimPrefix(scaler, "\n---\n"))...)
			if err != nil {
				t.Fatal(err)
			}
			mustApply(t, other, apply.Options{})
		}
		nothing("again", text)
		// The autoscaler has not set it yet: another number in the manifest is not sent, and another image does not reset it.
		image := strings.Replace(strings.Replace(text, "replicas: 2", "replicas: 5", 1), "web:1", "web:2", 1)
		if out := mustApply(t, set(t, ns, image), apply.Options{}); out.Changed() != 1 {
			t.Errorf("another image: %+v", out.Objects)
		}
		want("after another image", 2)
		_, err := deployments.UpdateScale(t.Context(), "web", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 7}}, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
		if err != nil {
			t.Fatal(err)
		}
		nothing("scaled", image)
		want("scaled", 7)
		nothing("with another number", strings.Replace(image, "replicas: 5", "replicas: 6", 1))
		if out := mustApply(t, set(t, ns, strings.Replace(image, "web:2", "web:3", 1)), apply.Options{}); out.Changed() != 1 {
			t.Errorf("a third image: %+v", out.Objects)
		}
		want("after a third image", 7)
	}
	// Without an autoscaler the same is a conflict, which nobody forces.
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, two), apply.Options{})
	if _, err := typed(t).AppsV1().Deployments(ns).UpdateScale(t.Context(), "web", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 7}}, metav1.UpdateOptions{FieldManager: "hand"}); err != nil {
		t.Fatal(err)
	}
	_, err := apply.Apply(t.Context(), config(t), set(t, ns, two), apply.Options{})
	if apply.Classify(err) != apply.ClassConflict || !strings.Contains(err.Error(), ".spec.replicas") {
		t.Errorf("got %v", err)
	}
}
