package warm_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/warm"
)

// Images and placeholders are one set of objects; applied without one of them, that one is pruned.
func ExampleImages_Objects() {
	home := warm.Home{Namespace: "team-a"}
	sandboxes := warm.Sandboxes{Rules: placement.Rules{NodeSelector: map[string]string{"pool": "agents"}}}
	images, err := warm.Images{"registry.example.com/team-a/default:3f2a"}.Objects(home, sandboxes)
	if err != nil {
		fmt.Println(err)
		return
	}
	placeholders, err := warm.Capacity{Mode: warm.HoldCapacity}.Objects(home, sandboxes)
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := apply.NewSet("warm", "team-a", append(images, placeholders...)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range set.Objects { // apply.Apply(ctx, config, set, apply.Options{Prune: true})
		fmt.Println(object.GetKind(), object.GetName())
	}
	// Output:
	// DaemonSet jr2-warm-images
	// Deployment jr2-placeholder
	// PriorityClass jr2-placeholder-team-a-10
}

func ExampleImages_Check() {
	warnings, err := warm.Images{"registry.example.com/team-a/default"}.Check()
	if err != nil {
		fmt.Println(err)
	}
	for _, warning := range warnings {
		fmt.Println(warning.Code, "—", warning.Fix)
	}
	// Output: warm-image-moves — name registry.example.com/team-a/default by a version or a digest
}

func ExampleCapacity_Objects() {
	three := int32(3)
	capacity := warm.Capacity{Mode: warm.HoldCapacity, Replicas: &three, Resources: placement.Share{Memory: 8 << 30}}
	objects, err := capacity.Objects(warm.Home{Namespace: "team-a"}, warm.Sandboxes{})
	if err != nil {
		fmt.Println(err)
		return
	}
	deployment := objects[1].(*appsv1.Deployment)
	requests := deployment.Spec.Template.Spec.Containers[0].Resources.Requests
	fmt.Println(*deployment.Spec.Replicas, "nodes, each with", requests.Cpu(), requests.Memory(), requests.StorageEphemeral())
	// Output: 3 nodes, each with 1 8Gi 10Gi
}

func ExampleCapacity_Validate() {
	zero := int32(0)
	fmt.Println(warm.Capacity{Mode: warm.HoldCapacity, Priority: &zero}.Validate())
	// Output: refusing: placeholders with the priority 0 would not give way to pods without a priority — keep it below 0 (the default is -10)
}

func ExampleCapacity_Check() {
	never := corev1.PreemptNever
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "jr2-sandbox"}, Value: 1000, PreemptionPolicy: &never}
	warnings, err := warm.Capacity{Mode: warm.HoldCapacity}.Check(warm.Home{Namespace: "team-a"}, warm.Sandboxes{}, warm.Surroundings{Class: class})
	if err != nil {
		fmt.Println(err)
	}
	for _, warning := range warnings {
		fmt.Println(warning.Code, "—", warning.Object)
	}
	// Output: sandbox-never-preempts — PriorityClass jr2-sandbox
}

func ExampleCapacity_ClassName() {
	fmt.Println(warm.Capacity{}.ClassName(warm.Home{Namespace: "team-a", Prefix: "kora"}))
	// Output: kora-placeholder-team-a-10
}

func ExampleCapacity_On() {
	fmt.Println(warm.Capacity{}.On(), warm.Capacity{Mode: warm.HoldCapacity}.On())
	// Output: false true
}

func ExamplePulled() {
	nodes := []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{
		{Names: []string{"docker.io/library/golang:1.26"}}}}}}
	all, err := warm.Pulled(warm.Images{"golang:1.26", "node:26"}, nodes, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range all {
		for _, image := range node.Images {
			fmt.Println(node.Node, image.Image, image.Presence)
		}
		fmt.Println(node.All())
	}
	// Output:
	// w-1 golang:1.26 present
	// w-1 node:26 absent
	// false
}

func ExampleStanding() {
	placeholder := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{warm.Label: warm.LabelPlaceholder}}, Spec: corev1.PodSpec{NodeName: "w-1"}}
	held := warm.Standing([]corev1.Pod{placeholder})
	fmt.Println(held.Nodes, len(held.Waiting))
	// Output: [w-1] 0
}

func ExampleIsPlaceholder() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{warm.Label: warm.LabelPlaceholder}}}
	fmt.Println(warm.IsPlaceholder(pod))
	// Output: true
}

// Placeholders give way to Sandboxes that preempt, so Room counts their places.
func ExampleGivesWayTo() {
	priority := int32(-10)
	placeholder := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{warm.Label: warm.LabelPlaceholder}}, Spec: corev1.PodSpec{Priority: &priority}}
	options := placement.RoomOptions{GivesWay: warm.GivesWayTo(&schedulingv1.PriorityClass{Value: 0})}
	fmt.Println(options.GivesWay(placeholder), warm.GivesWayTo(nil) == nil)
	// Output: true true
}
