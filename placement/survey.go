package placement

import (
	corev1 "k8s.io/api/core/v1"
)

// Rules is what a pod says about nodes, in the shapes of the pod spec. The zero Rules are those of an ordinary pod.
type Rules struct {
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	// Affinity may have all three kinds. Of them only the required node affinity can be told from nodes alone.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints and PriorityClassName are for those who see the pods: Explain and Room.
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	PriorityClassName         string                            `json:"priorityClassName,omitempty"`
}

// An Exclusion is a node that takes no pod of some Rules, and why.
type Exclusion struct {
	Node string `json:"node"`
	// Reason is a clause without the node's name: "lacks the label pool that sandbox.nodeSelector requires".
	Reason string `json:"reason"`
	// Transient says that the reason is expected to clear by itself: a fresh node whose network agent is not ready yet. The
	// thing to do is wait, not to tolerate the taint.
	Transient bool `json:"transient,omitempty"`
}

// Survey is what Look found.
type Survey struct {
	// Nodes can take a pod now, in the order given.
	Nodes []corev1.Node
	// Excluded is the other nodes, in the order given.
	Excluded []Exclusion
}

// Look sorts nodes by whether a pod of these rules can land on them. A node is excluded when it is cordoned, when it runs no
// Linux, when it lacks a label of the node selector or has another value, when it does not match the required node affinity, or when it
// has a NoSchedule or NoExecute taint that no toleration covers; the first of these is the reason, labels in key order, taints in the
// node's order but lasting ones before transient ones. A PreferNoSchedule taint excludes nothing.
//
// Room on the node, its readiness beyond taints, and pods that run there are not looked at: see Explain.
func Look(nodes []corev1.Node, rules Rules) Survey {
	var survey Survey
	screen := sandboxScreen(rules)
	for i := range nodes {
		if excluded, ok := exclude(&nodes[i], screen); ok {
			survey.Excluded = append(survey.Excluded, excluded)
			continue
		}
		survey.Nodes = append(survey.Nodes, nodes[i])
	}
	return survey
}

// Schedulable returns the nodes on which a pod of any of these rules can land: now, and soon, which is those that only transient
// reasons keep out. Both are in the order given and share no node. No rules means an ordinary pod.
func Schedulable(nodes []corev1.Node, rules ...Rules) (now, soon []corev1.Node) {
	if len(rules) == 0 {
		rules = []Rules{{}}
	}
	screens := make([]*screen, len(rules))
	for i, r := range rules {
		screens[i] = sandboxScreen(r)
	}
	for i := range nodes {
		node := nodes[i]
		usable, transient := false, false
		for _, s := range screens {
			excluded, ok := exclude(&node, s)
			usable = usable || !ok
			transient = transient || excluded.Transient
		}
		switch {
		case usable:
			now = append(now, node)
		case transient:
			soon = append(soon, node)
		}
	}
	return now, soon
}
