package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// harnessOf is what became of the primary container; nil before the kubelet has spoken of it.
func harnessOf(pod *corev1.Pod) *v1alpha1.HarnessStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != names.HarnessContainer {
			continue
		}
		harness := &v1alpha1.HarnessStatus{RestartCount: status.RestartCount}
		end := status.State.Terminated
		if end == nil {
			end = status.LastTerminationState.Terminated
		}
		if end != nil {
			harness.LastTerminated = &v1alpha1.Termination{Reason: end.Reason, ExitCode: end.ExitCode}
			if !end.FinishedAt.IsZero() {
				harness.LastTerminated.FinishedAt = end.FinishedAt.DeepCopy()
			}
		}
		return harness
	}
	return nil
}

// waitingOf is the containers that wait, init containers first.
func waitingOf(pod *corev1.Pod) []v1alpha1.WaitingContainer {
	var all []v1alpha1.WaitingContainer
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := status.State.Waiting; w != nil {
			all = append(all, v1alpha1.WaitingContainer{Container: status.Name, Reason: w.Reason, Message: w.Message})
		}
	}
	return all
}
