package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"

	"jr2.dev/jr2/config"
)

// Requests is what a pod asks of a node, by the scheduler's own rule: what its containers ask together or, if that is more, what they and the
// native sidecars before each init container ask while it runs; pod-level resources stand for those of the containers; the overhead of the
// RuntimeClass, which admission has written into the pod, comes on top. For a pod that runs, what the kubelet has given it counts if it is
// more.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	return requests(pod, nil)
}

// requests may use a map that holds nothing of worth any more.
func requests(pod *corev1.Pod, reuse corev1.ResourceList) corev1.ResourceList {
	given := pod.Spec.NodeName != "" && reportsResources(&pod.Status)
	return podresources.PodRequests(pod, podresources.PodResourcesOptions{
		Reuse: reuse, UseStatusResources: given, InPlacePodLevelResourcesVerticalScalingEnabled: given,
	})
}

// reportsResources says whether a kubelet has said what it gave. Without that the status says nothing that the spec does not, and costs twice.
func reportsResources(status *corev1.PodStatus) bool {
	if status.Resources != nil || status.AllocatedResources != nil {
		return true
	}
	for _, statuses := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Resources != nil || statuses[i].AllocatedResources != nil {
				return true
			}
		}
	}
	return false
}

// amounts are resources as the scheduler counts them: cpu in millicores, the others whole, both rounded up.
type amounts struct {
	cpu, memory, disk int64
	// others are devices and huge pages; nil when there are none.
	others map[corev1.ResourceName]int64
}

func amountsOf(list corev1.ResourceList) amounts {
	var a amounts
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			a.cpu = quantity.MilliValue()
		case corev1.ResourceMemory:
			a.memory = quantity.Value()
		case corev1.ResourceEphemeralStorage:
			a.disk = quantity.Value()
		case corev1.ResourcePods, corev1.ResourceStorage:
		default:
			if a.others == nil {
				a.others = map[corev1.ResourceName]int64{}
			}
			a.others[name] = quantity.Value()
		}
	}
	return a
}

func (a *amounts) add(b amounts) {
	a.cpu += b.cpu
	a.memory += b.memory
	a.disk += b.disk
	for name, value := range b.others {
		if a.others == nil {
			a.others = map[corev1.ResourceName]int64{}
		}
		a.others[name] += value
	}
}

func (a *amounts) of(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return a.cpu
	case corev1.ResourceMemory:
		return a.memory
	case corev1.ResourceEphemeralStorage:
		return a.disk
	}
	return a.others[name]
}

// quantityOf turns an amount of the scheduler's back into the API's.
func quantityOf(name corev1.ResourceName, value int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(value, resource.BinarySI)
	}
	return *resource.NewQuantity(value, resource.DecimalSI)
}

// amountText writes an amount of a resource as a Size does: 1984Mi, 500m.
func amountText(name corev1.ResourceName, value int64) string {
	switch name {
	case corev1.ResourceCPU:
		return config.FormatCPU(value)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return config.FormatMemory(value)
	}
	quantity := quantityOf(name, value)
	return quantity.String()
}
