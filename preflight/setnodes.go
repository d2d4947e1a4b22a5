package preflight

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"jr2.dev/jr2/placement"
)

// explain asks package placement where the pod of a workload can land, once. Pods that the workload made earlier do not stand in its way: they go
// when the new ones come.
func (l *setLook) explain(w *workload) placement.Explanation {
	if w.explained == nil {
		explained := placement.Explain(l.landingPod(w), l.facts.Nodes, placement.ExplainOptions{
			Pods: l.facts.Pods, Namespaces: l.namespaceLabels(), GivesWay: w.owns,
		})
		leavingIsNever(&explained)
		w.explained = &explained
	}
	return *w.explained
}

// leavingIsNever takes nodes that go away out, although the scheduler would still use them for a pod that tolerates it.
func leavingIsNever(e *placement.Explanation) {
	for i := range e.Nodes {
		if node := &e.Nodes[i]; node.Leaving {
			node.Answer, node.Reasons = placement.Never, []placement.Reason{{Code: placement.ReasonLeaving, Answer: placement.Never, Text: "is being removed, as a taint says"}}
		}
	}
}

// landing are the nodes on which the pod can land: now, when something clears by itself, or when others make room.
func (l *setLook) landing(w *workload) []corev1.Node {
	answers := l.explain(w).Nodes
	var nodes []corev1.Node
	for i := range l.facts.Nodes {
		if answers[i].Answer != placement.Never {
			nodes = append(nodes, l.facts.Nodes[i])
		}
	}
	return nodes
}

// namespaceLabels are the labels of the namespaces once the set is there; nil when those of the cluster were not read.
func (l *setLook) namespaceLabels() map[string]map[string]string {
	if l.facts.Namespaces == nil {
		return nil
	}
	all := map[string]map[string]string{}
	for name, namespace := range l.facts.Namespaces {
		all[name] = namespace.Labels
	}
	for _, name := range l.namespaces() {
		if arriving := l.namespace(name); arriving != nil {
			all[name] = labels.Merge(all[name], arriving.Labels)
		}
	}
	return all
}

// landingPod is the pod as the scheduler will see it: what the API server made of it when it was asked, else the template with what is known to be
// filled in.
func (l *setLook) landingPod(w *workload) *corev1.Pod {
	pod := l.filledIn(w)
	if w.kind == "DaemonSet" {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, placement.DaemonTolerations(&pod.Spec)...)
	}
	l.expectCompany(w, pod)
	return pod
}

func (l *setLook) filledIn(w *workload) *corev1.Pod {
	pod, facts := w.runs(), placement.Facts{}
	if class := l.runtimeClass(w.pod.Spec.RuntimeClassName); class != nil {
		facts.RuntimeClasses = []nodev1.RuntimeClass{*class}
	}
	// Of a pod that was admitted, this adds what a RuntimeClass adds that arrives with the set: the pod was made without it.
	if w.admitted == nil || pod.Spec.RuntimeClassName == nil {
		pod = pod.DeepCopy()
		pod.Spec.RuntimeClassName = w.pod.Spec.RuntimeClassName
		pod, _ = facts.Admit(pod) // a class that nobody has is a finding of its own
	} else {
		pod = pod.DeepCopy()
	}
	// The API server lets every pod stay on a lost node for five minutes. That says how long a pod stays there, and would read as if one should be
	// placed there.
	pod.Spec.Tolerations = slices.DeleteFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds != nil && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
	})
	return pod
}

// expectCompany takes the wish to be beside other pods out of a pod where those pods arrive with the set, or where nobody knows what runs.
func (l *setLook) expectCompany(w *workload, pod *corev1.Pod) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return
	}
	wishes := pod.Spec.Affinity.PodAffinity
	wishes.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(wishes.RequiredDuringSchedulingIgnoredDuringExecution, func(term corev1.PodAffinityTerm) bool {
		return l.facts.Pods == nil || slices.ContainsFunc(l.workloads, func(other *workload) bool { return other != w && w.selects(&term, other) })
	})
}

// selects says whether a term of a workload's pods is about the pods of another, or of itself.
func (w *workload) selects(term *corev1.PodAffinityTerm, other *workload) bool {
	everywhere := term.NamespaceSelector != nil && len(term.NamespaceSelector.MatchLabels)+len(term.NamespaceSelector.MatchExpressions) == 0
	home := len(term.Namespaces) == 0 && term.NamespaceSelector == nil && w.namespace == other.namespace || slices.Contains(term.Namespaces, other.namespace)
	if !home && !everywhere {
		return false
	}
	for _, key := range term.MismatchLabelKeys {
		if value, ok := w.pod.Labels[key]; ok && value == other.pod.Labels[key] { // pods with the same value are not meant
			return false
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	return err == nil && selector.Matches(labels.Set(other.pod.Labels))
}
