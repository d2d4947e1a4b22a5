package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/config"
)

// SandboxPod is the shape of a Sandbox's pod as far as placement goes, for Explain and Room: the Size of the share as pod-level resources,
// requests equal to limits, split over the Harness and the Custodian, and its disk as ephemeral storage that the Harness requests (the Kit's is
// config.WorkDisk; 0 means none). It is not the pod that runs: images, volumes and probes are absent.
func SandboxPod(namespace string, share Share, rules Rules) *corev1.Pod {
	size := config.Size{Memory: share.Memory, CPU: share.CPU}
	split := config.ResolveSize(config.Workspace{Size: config.Limits{Memory: &size.Memory, CPU: &size.CPU}}, config.Limits{})
	// A Size below what config.Sizes allows leaves the Harness less than nothing; the pod as a whole is what counts.
	harness := equal(config.Size{Memory: max(split.Harness.Memory, 0), CPU: max(split.Harness.CPU, 0)})
	if share.Disk > 0 {
		harness.Requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(share.Disk, resource.BinarySI)
	}
	whole := equal(size)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec: corev1.PodSpec{
			Resources: &whole,
			Containers: []corev1.Container{
				{Name: "harness", Resources: harness},
				{Name: "custodian", Resources: equal(split.Custodian)},
			},
		},
	}
	rules.Write(&pod.Spec)
	return pod
}

// equal are resources whose requests are their limits.
func equal(size config.Size) corev1.ResourceRequirements {
	list := func() corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceMemory: *resource.NewQuantity(size.Memory, resource.BinarySI),
			corev1.ResourceCPU:    *resource.NewMilliQuantity(size.CPU, resource.DecimalSI),
		}
	}
	return corev1.ResourceRequirements{Requests: list(), Limits: list()}
}

// Write puts the rules into a pod spec, verbatim.
func (r Rules) Write(spec *corev1.PodSpec) {
	spec.NodeSelector, spec.Tolerations, spec.Affinity = r.NodeSelector, r.Tolerations, r.Affinity
	spec.TopologySpreadConstraints, spec.PriorityClassName = r.TopologySpreadConstraints, r.PriorityClassName
}
