package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// neighbors are the required affinities between the pod and the pods that run, counted per domain.
type neighbors struct {
	pod *corev1.Pod
	// near and apart are the terms of the pod's own affinity and anti-affinity.
	near, apart []term
	// beside counts pods that match all near terms, away those that match an apart term, both per domain of the term.
	beside, away map[domain]int
	// unwelcome counts terms of pods that run and do not want this pod, per domain.
	unwelcome map[domain]int
	// labels are those of the namespaces.
	labels map[string]map[string]string
}

type domain struct{ key, value string }

// A term selects pods, and counts by a topology key.
type term struct {
	key        string
	selector   labels.Selector
	namespaces []string
	// others selects further namespaces by label; nil selects none.
	others labels.Selector
	labels map[string]map[string]string
}

// termsOf reads terms of a pod. One that can't be read is none: the API server lets no such pod in.
func termsOf(pod *corev1.Pod, from []corev1.PodAffinityTerm, namespaces map[string]map[string]string) []term {
	var terms []term
	for i := range from {
		selector, err := metav1.LabelSelectorAsSelector(from[i].LabelSelector)
		if err != nil {
			continue
		}
		t := term{key: from[i].TopologyKey, selector: selector, namespaces: from[i].Namespaces, labels: namespaces}
		if from[i].LabelSelector != nil {
			t.addKeys(pod, &from[i])
		}
		if from[i].NamespaceSelector != nil {
			if t.others, err = metav1.LabelSelectorAsSelector(from[i].NamespaceSelector); err != nil {
				continue
			}
		} else if len(t.namespaces) == 0 {
			t.namespaces = []string{pod.Namespace}
		}
		terms = append(terms, t)
	}
	return terms
}

// addKeys adds what the API server writes into the selector of a pod that it lets in.
func (t *term) addKeys(pod *corev1.Pod, from *corev1.PodAffinityTerm) {
	for _, key := range from.MatchLabelKeys {
		if value, ok := pod.Labels[key]; ok {
			t.selector = t.selector.Add(equals(key, value)...)
		}
	}
	for _, key := range from.MismatchLabelKeys {
		value, ok := pod.Labels[key]
		if !ok {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}}})
		if err == nil {
			requirements, _ := selector.Requirements()
			t.selector = t.selector.Add(requirements...)
		}
	}
}

func (t *term) selects(pod *corev1.Pod) bool {
	return t.in(pod.Namespace) && t.selector.Matches(labels.Set(pod.Labels))
}

func (t *term) in(namespace string) bool {
	for _, name := range t.namespaces {
		if name == namespace {
			return true
		}
	}
	return t.others != nil && t.others.Matches(labels.Set(t.labels[namespace]))
}

func selectedByAll(terms []term, pod *corev1.Pod) bool {
	for i := range terms {
		if !terms[i].selects(pod) {
			return false
		}
	}
	return len(terms) > 0
}

func nearTerms(affinity *corev1.Affinity) []corev1.PodAffinityTerm {
	if affinity == nil || affinity.PodAffinity == nil {
		return nil
	}
	return affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func apartTerms(affinity *corev1.Affinity) []corev1.PodAffinityTerm {
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	return affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func neighborsOf(q *question, opts ExplainOptions) *neighbors {
	n := &neighbors{
		pod: q.pod, beside: map[domain]int{}, away: map[domain]int{}, unwelcome: map[domain]int{}, labels: opts.Namespaces,
		near:  termsOf(q.pod, nearTerms(q.pod.Spec.Affinity), opts.Namespaces),
		apart: termsOf(q.pod, apartTerms(q.pod.Spec.Affinity), opts.Namespaces),
	}
	for i := range q.nodes {
		for _, pod := range q.on[i].pods {
			n.count(pod, &q.nodes[i])
		}
	}
	return n
}

// count takes a pod on a node into account.
func (n *neighbors) count(pod *corev1.Pod, node *corev1.Node) {
	if selectedByAll(n.near, pod) {
		for i := range n.near {
			bump(n.beside, node, n.near[i].key)
		}
	}
	for i := range n.apart {
		if n.apart[i].selects(pod) {
			bump(n.away, node, n.apart[i].key)
		}
	}
	for _, t := range termsOf(pod, apartTerms(pod.Spec.Affinity), n.labels) {
		if t.selects(n.pod) {
			bump(n.unwelcome, node, t.key)
		}
	}
}

func bump(counts map[domain]int, node *corev1.Node, key string) {
	if value, ok := node.Labels[key]; ok {
		counts[domain{key, value}]++
	}
}

// company says whether those that the pod wants to be with are there. The first of pods that want to be with each other may go anywhere.
func (n *neighbors) company(node *corev1.Node) bool {
	missing := false
	for i := range n.near {
		value, ok := node.Labels[n.near[i].key]
		if !ok {
			return false
		}
		missing = missing || n.beside[domain{n.near[i].key, value}] == 0
	}
	return !missing || len(n.beside) == 0 && selectedByAll(n.near, n.pod)
}

func (n *neighbors) alone(node *corev1.Node) bool {
	for i := range n.apart {
		if value, ok := node.Labels[n.apart[i].key]; ok && n.away[domain{n.apart[i].key, value}] > 0 {
			return false
		}
	}
	return true
}

func (n *neighbors) welcome(node *corev1.Node) bool {
	for d := range n.unwelcome {
		if value, ok := node.Labels[d.key]; ok && value == d.value {
			return false
		}
	}
	return true
}

// appendReasons tells the first rule that does not hold, as the scheduler does.
func (n *neighbors) appendReasons(reasons []Reason, node *corev1.Node) []Reason {
	switch {
	case !n.company(node):
		return append(reasons, Reason{Code: ReasonNoNeighbor, Answer: Full, Text: "has no pod that the pod's affinity wants to be with", Scheduler: wordsNoNeighbor})
	case !n.alone(node):
		return append(reasons, Reason{Code: ReasonNotBeside, Answer: Full, Text: "has a pod that the pod's anti-affinity keeps away from", Scheduler: wordsNotBeside})
	case !n.welcome(node):
		return append(reasons, Reason{Code: ReasonNotWanted, Answer: Full, Text: "has a pod whose anti-affinity keeps this pod away", Scheduler: wordsNotWanted})
	}
	return reasons
}
