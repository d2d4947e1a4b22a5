package apply_test

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

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
	t.Parallel()
	two := strings.Replace(stack, "replicas: 1", "replicas: 2", 1)
	for name, ofTheSet := range map[string]bool{"of the set": true, "of the cluster": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replicasLeftAlone(t, two, ofTheSet)
		})
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

func replicasLeftAlone(t *testing.T, two string, ofTheSet bool) {
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
			t.Errorf("%s: %d replicas, %v", when, *d.Spec.Replicas, err)
		}
	}
	nothing := func(when, text string) {
		t.Helper()
		if p := mustPlan(t, set(t, ns, text), apply.Options{}); p.Changes() != 0 || p.Err() != nil {
			t.Errorf("%s: %s", when, p)
		}
		if out := mustApply(t, set(t, ns, text), apply.Options{}); out.Changed() != 0 {
			t.Errorf("%s: %+v", when, out.Objects)
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

// Field case F18, of other kinds than Deployments: what an autoscaler scales through another resource, in words of another version of it.
func TestReplicasOfOtherKindsAreLeftAlone(t *testing.T) {
	t.Parallel()
	const stateful = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x, namespace: NS}\nspec: {replicas: 2, serviceName: x, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {nodeSelector: {no: where}, containers: [{name: x, image: \"registry.example/x:1\"}]}}}"
	const older = `---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: x, namespace: NS}
spec: {minReplicas: 1, maxReplicas: 9, targetCPUUtilizationPercentage: 50, scaleTargetRef: {apiVersion: VERSION, kind: KIND, name: x}}`
	for name, tt := range map[string]struct{ text, group, version, kind string }{
		"a StatefulSet":                  {stateful, "apps", "v1", "StatefulSet"},
		"a ReplicaSet":                   {strings.NewReplacer("StatefulSet", "ReplicaSet", "serviceName: x, ", "").Replace(stateful), "apps", "v1", "ReplicaSet"},
		"a custom resource with a scale": {"apiVersion: GROUP/v1\nkind: Fleet\nmetadata: {name: x, namespace: NS}\nspec: {replicas: 2, n: 1}", "", "v1", "Fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			if tt.group == "" {
				tt.group = ns + ".example.com"
				mustApply(t, mustSet(t, "definition", ns, strings.NewReplacer("served: true", "served: true, subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}",
					"{n: {type: integer}}", "{n: {type: integer}, replicas: {type: integer}}").Replace(crd(tt.group, tt.kind))), apply.Options{})
			}
			text := strings.NewReplacer("GROUP", tt.group, "VERSION", tt.group+"/"+tt.version, "KIND", tt.kind).Replace(tt.text + "\n" + older)
			client, err := dynamic.NewForConfig(config(t))
			if err != nil {
				t.Fatal(err)
			}
			at := client.Resource(schema.GroupVersionResource{Group: tt.group, Version: tt.version, Resource: strings.ToLower(tt.kind) + "s"}).Namespace(ns)
			mustApply(t, set(t, ns, text), apply.Options{})
			if _, err := at.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale"); err != nil {
				t.Fatal(err)
			}
			again := set(t, ns, text)
			if p := mustPlan(t, again, apply.Options{}); p.Changes() != 0 || p.Err() != nil {
				t.Errorf("scaled: %s", p)
			}
			changed := set(t, ns, strings.NewReplacer("registry.example/x:1", "registry.example/x:2", "n: 1", "n: 2").Replace(text))
			if out := mustApply(t, changed, apply.Options{}); out.Changed() != 1 {
				t.Errorf("changed: %+v", out.Objects)
			}
			live, err := at.Get(t.Context(), "x", metav1.GetOptions{})
			if n, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); err != nil || n != 7 {
				t.Errorf("%d replicas, %v", n, err)
			}
		})
	}
}
