package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A spread is one topology spread constraint that must hold (whenUnsatisfiable: DoNotSchedule), counted over the cluster.
type spread struct {
	key      string
	skew     int
	domains  int // minDomains
	selector labels.Selector
	// self is 1 when the pod counts itself.
	self int
	// counts are the matching pods of each eligible domain, and at is the count of each node's domain: nil where the node has no such label.
	counts map[string]*int
	at     []*int
	honors honors
	// low is least, kept until a count changes.
	low    int
	lowSet bool
}

// honors are the two policies of which nodes count at all.
type honors struct{ affinity, taints bool }

// spreadsOf reads the constraints and counts. A constraint that can't be read is none: the API server lets no such pod in.
func spreadsOf(q *question) []spread {
	var all []spread
	for _, constraint := range q.pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
		if err != nil {
			continue
		}
		for _, key := range constraint.MatchLabelKeys {
			if value, ok := q.pod.Labels[key]; ok {
				for _, requirement := range equals(key, value) {
					selector = selector.Add(requirement)
				}
			}
		}
		s := spread{
			key: constraint.TopologyKey, skew: int(constraint.MaxSkew), domains: 1, selector: selector, counts: map[string]*int{}, at: make([]*int, len(q.nodes)),
			honors: honors{affinity: true},
		}
		if constraint.MinDomains != nil {
			s.domains = int(*constraint.MinDomains)
		}
		if policy := constraint.NodeAffinityPolicy; policy != nil {
			s.honors.affinity = *policy == corev1.NodeInclusionPolicyHonor
		}
		if policy := constraint.NodeTaintsPolicy; policy != nil {
			s.honors.taints = *policy == corev1.NodeInclusionPolicyHonor
		}
		if selector.Matches(labels.Set(q.pod.Labels)) {
			s.self = 1
		}
		all = append(all, s)
	}
	for i := range q.nodes {
		if !hasKeys(&q.nodes[i], all) {
			continue
		}
		for n := range all {
			if q.eligible(&q.nodes[i], all[n].honors) {
				*all[n].domain(q.nodes[i].Labels[all[n].key]) += all[n].count(q.on[i].pods, q.pod.Namespace)
			}
		}
	}
	for n := range all {
		all[n].seat(q.nodes)
	}
	return all
}

// domain is the count of an eligible domain.
func (s *spread) domain(value string) *int {
	if s.counts[value] == nil {
		s.counts[value] = new(int)
	}
	return s.counts[value]
}

// seat finds each node's count. A domain without an eligible node has none of its own and stays at zero.
func (s *spread) seat(nodes []corev1.Node) {
	nobody := new(int)
	for i := range nodes {
		if value, ok := nodes[i].Labels[s.key]; ok {
			if s.at[i] = s.counts[value]; s.at[i] == nil {
				s.at[i] = nobody
			}
		}
	}
}

func equals(key, value string) labels.Requirements {
	requirements, _ := labels.SelectorFromSet(labels.Set{key: value}).Requirements()
	return requirements
}

// hasKeys says whether a node has the labels of all constraints: one that lacks any is no domain of none.
func hasKeys(node *corev1.Node, all []spread) bool {
	for i := range all {
		if _, ok := node.Labels[all[i].key]; !ok {
			return false
		}
	}
	return true
}

// eligible says whether a node is a domain for a constraint with these policies.
func (q *question) eligible(node *corev1.Node, h honors) bool {
	if h.affinity {
		if _, differs := q.screen.label(node); differs || !q.screen.affine(node) {
			return false
		}
	}
	if h.taints {
		for _, taint := range node.Spec.Taints {
			if repels(taint, q.screen.tolerations) {
				return false
			}
		}
	}
	return true
}

// count leaves out pods that are being deleted, as the scheduler does.
func (s *spread) count(pods []*corev1.Pod, namespace string) int {
	if s.selector.Empty() {
		return 0
	}
	count := 0
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && pod.Namespace == namespace && s.selector.Matches(labels.Set(pod.Labels)) {
			count++
		}
	}
	return count
}

// least is how many the emptiest domain has; with fewer domains than wanted, a domain that does not exist yet is the emptiest.
func (s *spread) least() int {
	if !s.lowSet {
		s.low, s.lowSet = s.countLeast(), true
	}
	return s.low
}

func (s *spread) countLeast() int {
	if len(s.counts) < s.domains || len(s.counts) == 0 {
		return 0
	}
	first, least := true, 0
	for _, count := range s.counts {
		if first || *count < least {
			first, least = false, *count
		}
	}
	return least
}

// holds says whether the constraint still holds with the pod on this node.
func (s *spread) holds(i int) bool {
	return s.at[i] != nil && *s.at[i]+s.self-s.least() <= s.skew
}

// appendSpread tells the first constraint that does not hold, as the scheduler does.
func (q *question) appendSpread(reasons []Reason, i int) []Reason {
	for n := range q.spread {
		s := &q.spread[n]
		if s.at[i] == nil {
			return append(reasons, Reason{Code: ReasonSpreadKey, Answer: Never, Scheduler: wordsSpreadKey,
				Text: fmt.Sprintf("lacks the label %s that a topology spread constraint counts by", s.key)})
		}
		if !s.holds(i) {
			return append(reasons, Reason{Code: ReasonSpread, Answer: Full, Scheduler: wordsSpread,
				Text: fmt.Sprintf("has %d such pods in %s=%s where another has %d, and the pod's topology spread constraint allows a difference of %d", *s.at[i], s.key, q.nodes[i].Labels[s.key], s.least(), s.skew)})
		}
	}
	return reasons
}
