package apply

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// containersOf pairs the containers of the spec with their statuses, init containers first.
func containersOf(p corev1.Pod) []ContainerEvidence {
	statuses := map[string]corev1.ContainerStatus{}
	for _, s := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		statuses[s.Name] = s
	}
	var all []ContainerEvidence
	for _, c := range p.Spec.InitContainers {
		s, ok := statuses[c.Name]
		all = append(all, containerOf(c, true, s, ok))
	}
	for _, c := range p.Spec.Containers {
		s, ok := statuses[c.Name]
		all = append(all, containerOf(c, false, s, ok))
	}
	return all
}

func containerOf(c corev1.Container, init bool, s corev1.ContainerStatus, known bool) ContainerEvidence {
	e := ContainerEvidence{Name: c.Name, Init: init, Image: c.Image, Restarts: s.RestartCount, Ready: s.Ready}
	if !known {
		return e
	}
	switch st := s.State; {
	case st.Waiting != nil:
		e.State, e.Message = st.Waiting.Reason, st.Waiting.Message
		if t := s.LastTerminationState.Terminated; t != nil {
			e.Last = exitOf(t)
			if t.Message != "" {
				e.Last += ": " + t.Message
			}
		}
		if e.State == "" {
			e.State = "waiting"
		}
	case st.Terminated != nil:
		e.State, e.Message = exitOf(st.Terminated), st.Terminated.Message
		e.finished = st.Terminated.ExitCode == 0
	case s.Ready:
		e.State = "ready"
	default:
		e.State = "not ready"
	}
	return e
}

func exitOf(t *corev1.ContainerStateTerminated) string {
	reason := t.Reason
	if reason == "" {
		reason = "terminated"
	}
	return fmt.Sprintf("%s (exit code %d)", reason, t.ExitCode)
}
