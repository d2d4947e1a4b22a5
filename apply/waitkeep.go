package apply

import (
	corev1 "k8s.io/api/core/v1"
)

// keepFailures reads the evidence of a Job's pods while they are there: a Job that fails may take them away, and the log that says why with
// them. Only that of the last failure is kept.
func (w *waiter) keepFailures(it *waitItem, s *scene) {
	for _, p := range s.podsOf(it.uid) {
		exits := failedExits(p)
		if exits == 0 || it.read[p.Name] == exits || it.reading {
			continue // what comes while one is read is seen with the next news
		}
		if it.read == nil {
			it.read = map[string]int{}
		}
		it.read[p.Name], it.reading = exits, true
		w.running.Go(func() {
			g := gatherer{client: w.cluster.typed, w: Workload{Kind: it.ref.Kind, Namespace: it.ref.Namespace, Name: it.ref.Name}, nodes: map[string]string{}}
			e := g.pod(w.ctx, *p)
			_ = w.tell(w.ctx, func() { it.keep(e) })
		})
	}
}

func (it *waitItem) keep(e PodEvidence) {
	it.reading, it.news = false, true
	if len(e.Log) > 0 || it.kept == nil {
		it.kept = &e
	}
}

// failedExits counts the exits of a pod's containers that were failures.
func failedExits(p *corev1.Pod) int {
	n := 0
	for _, c := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			n++
		}
		n += int(c.RestartCount)
	}
	return n
}

// withKept adds what was kept of a Job's last failure when nothing is left of it.
func (it *waitItem) withKept(found Evidence) Evidence {
	if it.kept == nil {
		return found
	}
	for _, p := range found.Pods {
		if p.Name == it.kept.Name || len(p.Log) > 0 {
			return found
		}
	}
	found.Pods = append(found.Pods[:min(len(found.Pods), evidencePods-1)], *it.kept)
	return found
}
