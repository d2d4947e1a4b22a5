package controller

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"jr2.dev/jr2/placement/v1alpha1"
)

// Reasons that Kubernetes gives and no package of its API names.
const (
	// nodeLostReason is the pod's reason once its node does not answer (pkg/util/node NodeUnreachablePodReason).
	nodeLostReason = "NodeLost"
	// deletionByPodGC is the reason of DisruptionTarget on a pod whose node is gone (pkg/controller/podgc).
	deletionByPodGC = "DeletionByPodGC"
)

// lossOf says why a pod that is there is lost; "" while it is not. A pod that is being deleted comes back never, so it is lost as soon as
// its node is away: nobody would end it.
//
// A kubelet that ends a deleted pod writes a phase without a reason, by how the containers ended, before the pod is gone. Containers that end
// by themselves start again, so the deletion is why.
func lossOf(pod *corev1.Pod, nodeAway bool) (reason, message string) {
	disruption := disruptionOf(pod)
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	switch {
	case over && disruption != nil && disruption.Reason == deletionByPodGC:
		return v1alpha1.ReasonNodeLost, endMessage(pod)
	case over && pod.DeletionTimestamp != nil && pod.Status.Reason == "":
		return v1alpha1.ReasonPodDeleted, deletedMessage(disruption)
	}
	switch pod.Status.Phase {
	case corev1.PodFailed:
		return reasonOr(pod.Status.Reason, v1alpha1.ReasonPodFailed), endMessage(pod)
	case corev1.PodSucceeded:
		return reasonOr(pod.Status.Reason, v1alpha1.ReasonPodSucceeded), endMessage(pod)
	}
	if pod.DeletionTimestamp != nil && (nodeAway || pod.Status.Reason == nodeLostReason) {
		return v1alpha1.ReasonNodeLost, fmt.Sprintf("the pod is being deleted and its node %s is gone or does not answer", pod.Spec.NodeName)
	}
	return "", ""
}

// goneReason is for a pod that was there and is not.
func goneReason(o observation) string {
	if o.nodeAway {
		return v1alpha1.ReasonNodeLost
	}
	return v1alpha1.ReasonPodDeleted
}

// goneMessage says what was last known of the pod's end.
func goneMessage(s *v1alpha1.SandboxStatus) string {
	message := "the pod is gone"
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil {
		if why, ok := strings.CutPrefix(ready.Message, leaving+": "); ok {
			return message + ": " + why
		}
	}
	return message
}

// leavingMessage says that the pod is being deleted, and for what where somebody said so.
func leavingMessage(pod *corev1.Pod) string {
	if disruption := disruptionOf(pod); disruption != nil && disruption.Message != "" {
		return leaving + ": " + disruption.Message
	}
	return leaving
}

// deletedMessage says that the pod was deleted, and for what where somebody said so.
func deletedMessage(disruption *corev1.PodCondition) string {
	if disruption != nil && disruption.Message != "" {
		return "the pod was deleted: " + disruption.Message
	}
	return "the pod was deleted"
}

// endMessage is the pod's own message, or else what its containers left.
func endMessage(pod *corev1.Pod) string {
	if pod.Status.Message != "" {
		return pod.Status.Message
	}
	if disruption := disruptionOf(pod); disruption != nil && disruption.Message != "" {
		return disruption.Message
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if end := status.State.Terminated; end != nil && end.ExitCode != 0 {
			return fmt.Sprintf("container %s ended with exit code %d (%s)", status.Name, end.ExitCode, end.Reason)
		}
	}
	return "all containers of the pod have ended"
}

// disruptionOf is the condition by which a pod says that somebody ends it: eviction, preemption, a taint, the garbage collector.
func disruptionOf(pod *corev1.Pod) *corev1.PodCondition {
	if c := podCondition(pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}
