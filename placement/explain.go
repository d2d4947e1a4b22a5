package placement

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// ExplainOptions is what is known beside the nodes. The zero value judges the nodes alone, as if nothing ran there.
type ExplainOptions struct {
	// Pods of the cluster, in all namespaces. Those that have ended hold nothing. nil means that nobody read them.
	Pods []corev1.Pod
	// DaemonSets whose pod will land on nodes that do not have it yet: its room counts as taken where it still fits. A node's DaemonSet
	// pods that run are among Pods.
	DaemonSets []appsv1.DaemonSet
	// Namespaces are the labels of each namespace, for pod affinity that selects namespaces by label. nil means that nobody read them: such a
	// term then selects only the namespaces that it names.
	Namespaces map[string]map[string]string
	// GivesWay says of a pod that runs that it goes when this pod comes, as a placeholder of lower priority does: what it holds counts as
	// free. nil means that none does. Whether the scheduler preempts is the pod's priority and preemption policy, which Explain does not judge.
	GivesWay func(*corev1.Pod) bool
}

// A NodeAnswer is what one node says.
type NodeAnswer struct {
	Node   string `json:"node"`
	Answer Answer `json:"answer"`
	// Reasons are why it is not usable, all of them, in the scheduler's order. The scheduler itself tells only those of its first plugin that
	// says no.
	Reasons []Reason `json:"reasons,omitempty"`
	// Leaving says that a taint announces the end of a node that would take the pod all the same, because the pod tolerates it.
	Leaving bool `json:"leaving,omitempty"`
}

// An Explanation is where a pod can land.
type Explanation struct {
	// Nodes are the answers in the order of the nodes given.
	Nodes []NodeAnswer `json:"nodes"`
	// Gates are the pod's scheduling gates. While there is one, the scheduler does not look at the pod: its queue holds it and no node does,
	// whatever the nodes say.
	Gates []string `json:"gates,omitempty"`
}

// Explain says of each node whether it takes the pod now, when something clears by itself, when others make room, or never, with all
// reasons. It decides by kube-scheduler's own rules of Kubernetes 1.36 with its default profile: cordon, node name, taints and
// tolerations, node selector and required node affinity, host ports, requests against what is free of each node alone, pod slots, topology
// spread constraints that must hold, and required affinity to pods and against them, of this pod and of those that run. One rule is the
// kubelet's: another operating system.
//
// The pod is a shape: it need not exist, and its own place among the pods given, by UID, does not count. What admission fills in must
// be there: see Facts.Admit.
//
// Not looked at: volumes and where they are, resource claims of devices, preemption, extenders and profiles of the cluster's own.
func Explain(pod *corev1.Pod, nodes []corev1.Node, opts ExplainOptions) Explanation {
	question := ask(pod, nodes, opts)
	answers := make([]NodeAnswer, len(nodes))
	for i := range nodes {
		answers[i] = question.answer(i)
	}
	return Explanation{Nodes: answers, Gates: Gates(pod)}
}

// Gates are the names of a pod's scheduling gates, in its order. A pod that has one waits for who set it: it is neither failed nor
// unschedulable, and to delete it or make it again would lose its place in the queue.
func Gates(pod *corev1.Pod) []string {
	var names []string
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return names
}

// Best is the best answer of any node; Never when there is no node.
func (e Explanation) Best() Answer {
	best := Never
	for i := range e.Nodes {
		if best.worse(e.Nodes[i].Answer) {
			best = e.Nodes[i].Answer
		}
	}
	return best
}

// With returns the names of the nodes that give this answer, in order.
func (e Explanation) With(answer Answer) []string {
	var names []string
	for i := range e.Nodes {
		if e.Nodes[i].Answer == answer {
			names = append(names, e.Nodes[i].Node)
		}
	}
	return names
}

// Message is what kube-scheduler says of a pod that no node takes, up to what it says of preemption: "0/3 nodes are available: 1 Insufficient
// cpu, 2 node(s) were unschedulable." It is "" while a node takes the pod or a gate holds it.
func (e Explanation) Message() string {
	if len(e.Gates) > 0 {
		return ""
	}
	if len(e.Nodes) == 0 {
		return "no nodes available to schedule pods"
	}
	counts := map[string]int{}
	for i := range e.Nodes {
		told := e.Nodes[i].schedulers()
		if len(told) == 0 {
			return ""
		}
		for _, words := range told {
			counts[words]++
		}
	}
	parts := make([]string, 0, len(counts))
	for words, count := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", count, words))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", len(e.Nodes), strings.Join(parts, ", "))
}

// schedulers are the words of the first plugin that says no.
func (n NodeAnswer) schedulers() []string {
	var words []string
	first := -1
	for _, reason := range n.Reasons {
		if reason.Scheduler == "" || slices.Contains(words, reason.Scheduler) {
			continue
		}
		if first < 0 {
			first = reason.stage()
		}
		if reason.stage() == first {
			words = append(words, reason.Scheduler)
		}
	}
	return words
}

// Why says each reason of the nodes that are not usable once, with the nodes that have it: "cp-1, cp-2: has the taint …; w-1: is
// cordoned". A node is told with the first reason that makes its answer. "" when a node is usable.
func (e Explanation) Why() string {
	if len(e.Gates) > 0 {
		return "the pod is held by the scheduling gate " + strings.Join(e.Gates, ", ")
	}
	if len(e.Nodes) == 0 {
		return "the cluster has no node"
	}
	nodes := map[string][]string{}
	var order []string
	for i := range e.Nodes {
		node := &e.Nodes[i]
		if node.Answer == Usable {
			return ""
		}
		text := node.worst().Text
		if nodes[text] == nil {
			order = append(order, text)
		}
		nodes[text] = append(nodes[text], node.Node)
	}
	for i, text := range order {
		order[i] = few(nodes[text]) + ": " + text
	}
	return strings.Join(order, "; ")
}

// worst is the first of the reasons that make the node's answer.
func (n NodeAnswer) worst() Reason {
	for _, reason := range n.Reasons {
		if reason.Answer == n.Answer {
			return reason
		}
	}
	return Reason{}
}

// few joins names and counts those beyond the fifth.
func few(names []string) string {
	const shown = 5
	if len(names) <= shown+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
