package preflight_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/preflight"
)

// crowd is so many pods on a node, each with these requests.
func crowd(n int, on string, requests ...string) (pods []corev1.Pod) {
	for i := range n {
		pods = append(pods, running("other", fmt.Sprintf("p-%s-%d", on, i), on, requests...))
	}
	return pods
}

// TestF20SlotsOfASet is case F20 for workloads of a set, and F21: what is free on each node alone, in each resource, and why none takes the pod.
func TestF20SlotsOfASet(t *testing.T) {
	sized := func(kind, resources string) string {
		return workloadYAML(kind, "sandbox", "", `{containers: [{name: a, image: "`+pinned+`", resources: `+resources+`}]}`)
	}
	fourCPU := sized("Deployment", "{requests: {cpu: 4}}")
	slots := with(node("a"), "cpu=8", "memory=32Gi", "pods=8")
	three := func(name string) corev1.Node { return with(node(name), "cpu=3", "pods=110") }
	succeeded, failed := crowd(8, "a", "cpu=100m"), crowd(8, "a", "cpu=100m")
	succeeded[0].Status.Phase, failed[7].Status.Phase = corev1.PodSucceeded, corev1.PodFailed
	// limited is an agent that states a limit alone; the server wrote its request.
	limited := crowd(1, "a", "memory=100Mi")
	limited[0].Spec.Containers[0].Resources.Limits = amountsOf("memory=100Mi")
	memory := with(node("a"), "memory=3106640Ki")
	memory.Status.Capacity = amountsOf("memory=3788Mi")
	const none = "warn unschedulable Deployment jarvis/sandbox: "
	for name, test := range map[string]struct {
		text  string
		nodes []corev1.Node
		pods  []corev1.Pod
		want  string
	}{
		"F20: eight of eight":               {fourCPU, []corev1.Node{slots}, crowd(8, "a", "cpu=100m"), none + "no node has a place for one of its pods now, so they will stay Pending: a: has no free pod slot: pods 8/8"},
		"F20: three of four":                {fourCPU, []corev1.Node{with(node("b"), "cpu=4", "pods=110")}, crowd(1, "b", "cpu=1"), none + "no node has a place for one of its pods now, so they will stay Pending: b: has no room: cpu 3 free of 4 wanted"},
		"F20: three and three are not four": {fourCPU, []corev1.Node{three("b"), three("c")}, nil, none + "b, c: is too small: cpu 3 allocatable of 4 wanted"},
		"F20: together":                     {fourCPU, []corev1.Node{slots, with(node("b"), "cpu=4", "pods=110"), three("c"), three("d")}, append(crowd(8, "a", "cpu=100m"), crowd(1, "b", "cpu=1")...), none + "a: has no free pod slot: pods 8/8; b: has no room: cpu 3 free of 4 wanted; c, d: is too small: cpu 3 allocatable of 4 wanted"},
		"F20: who has succeeded holds none": {fourCPU, []corev1.Node{slots}, succeeded, ""},
		"F20: who has failed holds no slot": {fourCPU, []corev1.Node{slots}, failed, ""},
		"F20: a Job":                        {sized("Job", "{requests: {cpu: 1m}}"), []corev1.Node{slots}, crowd(8, "a", "cpu=100m"), "warn unschedulable Job jarvis/sandbox: a: has no free pod slot: pods 8/8"},
		"F20: who asks for nothing":         {sized("Deployment", "{}"), []corev1.Node{slots}, crowd(8, "a"), none + "a: has no free pod slot: pods 8/8"},
		"F20: more than fit":                {fourCPU, []corev1.Node{slots}, crowd(9, "a"), none + "a: has no free pod slot: pods 9/8"},
		"F20: memory":                       {sized("Deployment", "{requests: {memory: 40Gi}}"), []corev1.Node{slots, with(node("b"), "memory=32Gi")}, nil, none + "a, b: is too small: memory 32Gi allocatable of 40Gi wanted"},
		"F20: a device":                     {sized("Deployment", "{limits: {example.com/gpu: 2}}"), []corev1.Node{with(node("a"), "example.com/gpu=1"), with(node("b"), "example.com/gpu=1")}, nil, none + "a, b: is too small: example.com/gpu 1 allocatable of 2 wanted"},

		"F21: the case":                     {sized("Deployment", "{requests: {memory: 3000Mi}}"), []corev1.Node{memory}, crowd(1, "a", "memory=100Mi"), none + "no node has a place for one of its pods now"},
		"F21: limits alone":                 {sized("Deployment", "{limits: {memory: 3000Mi}}"), []corev1.Node{memory}, limited, none + "no node has a place"},
		"F21: it just fits":                 {sized("Deployment", "{requests: {memory: 2933Mi}}"), []corev1.Node{memory}, crowd(1, "a", "memory=100Mi"), ""},
		"F21: capacity is not asked":        {sized("Deployment", "{requests: {memory: 3100Mi}}"), []corev1.Node{memory}, nil, none + "a: is too small: memory 3106640Ki allocatable of 3100Mi wanted"},
		"F21: more than one agent":          {sized("Deployment", "{requests: {memory: 3000Mi}}"), []corev1.Node{memory}, crowd(2, "a", "memory=20Mi"), none + "no node has a place"},
		"F21: an agent on another node":     {sized("Deployment", "{requests: {memory: 3000Mi}}"), []corev1.Node{memory}, crowd(1, "b", "memory=100Mi"), ""},
		"F21: an agent's agent counts both": {sized("Deployment", "{requests: {cpu: 1, memory: 1Gi}}"), []corev1.Node{with(memory, "cpu=1100m")}, crowd(1, "a", "cpu=200m"), none + "a: has no room: cpu 900m free of 1 wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			if test.pods == nil {
				test.pods = []corev1.Pod{}
			}
			says(t, preflight.Schedulability(manifests(t, test.text), preflight.SetFacts{Nodes: test.nodes, Pods: test.pods}), want...)
		})
	}
}
