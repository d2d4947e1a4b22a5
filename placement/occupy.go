package placement

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
)

// A use is what one node has and what is held of it.
type use struct {
	has   allocatable
	held  amounts
	slots int64
	ports []hostPort
	pods  []*corev1.Pod
}

type allocatable struct {
	amounts
	slots int64
}

// occupy sums up, per node, what runs there. Sums are per node and never of nodes.
func occupy(pod *corev1.Pod, nodes []corev1.Node, opts ExplainOptions) []use {
	on := make([]use, len(nodes))
	at := make(map[string]int, len(nodes))
	for i := range nodes {
		list := nodes[i].Status.Allocatable
		slots := list[corev1.ResourcePods]
		on[i].has = allocatable{amountsOf(list), slots.Value()}
		at[nodes[i].Name] = i
	}
	scratch := corev1.ResourceList{}
	for i := range opts.Pods {
		other := &opts.Pods[i]
		if ended(other) || other.UID != "" && other.UID == pod.UID || opts.GivesWay != nil && opts.GivesWay(other) {
			continue
		}
		if n, ok := at[seat(other, pod)]; ok {
			on[n].take(other, scratch)
		}
	}
	for i := range opts.DaemonSets {
		reserve(&opts.DaemonSets[i], nodes, on)
	}
	return on
}

// seat is the node that a pod holds room of: its own, or the one that the scheduler has cleared for it by preemption, which it keeps from pods
// of lower priority.
func seat(other, pod *corev1.Pod) string {
	if other.Spec.NodeName == "" && helpers.PodPriority(other) >= helpers.PodPriority(pod) {
		return other.Status.NominatedNodeName
	}
	return other.Spec.NodeName
}

func (u *use) take(pod *corev1.Pod, scratch corev1.ResourceList) {
	u.held.add(amountsOf(requests(pod, scratch)))
	u.slots++
	u.ports = append(u.ports, hostPorts(&pod.Spec)...)
	u.pods = append(u.pods, pod)
}

// ended says whether a pod holds nothing any more. One that is being deleted still does until it is gone.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// reserve takes the room of a DaemonSet's pod on each node that will get one and has none, where it fits: one that does not fit waits, and keeps
// nobody out.
func reserve(set *appsv1.DaemonSet, nodes []corev1.Node, on []use) {
	pod := daemonPod(set)
	q := &question{pod: pod, nodes: nodes, on: on, asks: amountsOf(Requests(pod))}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q.asks.of(name) > 0 {
			q.order = append(q.order, name)
		}
	}
	for name := range q.asks.others {
		q.order = append(q.order, name)
	}
	screen := screenOf(&pod.Spec, podWords())
	for i := range nodes {
		if screen.lands(&nodes[i]) && !runs(set, on[i].pods) && q.enough(i) {
			on[i].take(pod, nil)
		}
	}
}

func runs(set *appsv1.DaemonSet, pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.UID == set.UID {
			return true
		}
	}
	return false
}

// daemonPod is the pod of a DaemonSet, with the tolerations that its controller adds.
func daemonPod(set *appsv1.DaemonSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace = set.Namespace
	fillIn(&pod.Spec)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, DaemonTolerations(&pod.Spec)...)
	return pod
}

// DaemonTolerations are those that the DaemonSet controller adds to its pods.
// https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
func DaemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	keys := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable}
	if spec.HostNetwork {
		keys = append(keys, corev1.TaintNodeNetworkUnavailable)
	}
	all := make([]corev1.Toleration, len(keys))
	for i, key := range keys {
		all[i] = corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	}
	return all
}
