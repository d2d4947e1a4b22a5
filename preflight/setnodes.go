package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"jr2.dev/jr2/placement"
)

// A verdict is what one node says to one pod.
type verdict int

const (
	takes verdict = iota
	// later: it would take the pod, and something that clears by itself is in the way.
	later
	// full: it is large enough, and other pods hold the room.
	full
	never
)

// A ruling is a verdict with its reason: a clause without the node's name.
type ruling struct {
	node    string
	verdict verdict
	reason  string
	// fix in words; "" when there is nothing to do but to wait.
	fix string
}

// rulings asks each node, in the order of the nodes, until one takes the pod: then there are none.
func (l *setLook) rulings(w *workload) []ruling {
	pod := l.landingPod(w)
	wanted := requestsOf(pod)
	all := make([]ruling, 0, len(l.facts.Nodes))
	for i := range l.facts.Nodes {
		node := &l.facts.Nodes[i]
		r := ruleOf(pod, node)
		if r.verdict == takes || r.verdict == later {
			if room := l.roomOn(w, node, wanted); room.verdict > r.verdict {
				r = room
			}
		}
		if r.verdict == takes {
			return nil
		}
		r.node = node.Name
		all = append(all, r)
	}
	return all
}

// daemonTolerations are those that the DaemonSet controller gives its pods.
// https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
func daemonTolerations(pod *corev1.Pod) []corev1.Toleration {
	keys := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable}
	if pod.Spec.HostNetwork {
		keys = append(keys, corev1.TaintNodeNetworkUnavailable)
	}
	var all []corev1.Toleration
	for _, key := range keys {
		all = append(all, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return all
}

// ruleOf applies the rules that do not depend on what runs: cordon, operating system, selectors, taints.
func ruleOf(pod *corev1.Pod, node *corev1.Node) ruling {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !placement.Tolerates(pod.Spec.Tolerations, cordon) {
		return ruling{verdict: never, reason: "is cordoned", fix: "kubectl uncordon " + node.Name}
	}
	system := node.Status.NodeInfo.OperatingSystem
	if system != "" && !strings.EqualFold(system, systemOf(pod)) {
		return ruling{verdict: never, reason: fmt.Sprintf("runs %s, and the pod is for %s", system, systemOf(pod)), fix: "add a node that runs " + systemOf(pod)}
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		want := key + "=" + pod.Spec.NodeSelector[key]
		if have, ok := node.Labels[key]; !ok || have != pod.Spec.NodeSelector[key] {
			return ruling{verdict: never, reason: "lacks the label " + want + " that the pod's nodeSelector requires",
				fix: "label a node (kubectl label node NODE " + want + "), or correct the nodeSelector"}
		}
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !ok {
		return ruling{verdict: never, reason: "does not match the node affinity that the pod requires", fix: "correct the required node affinity, or label a node to match it"}
	}
	return taintsOf(pod, node)
}

// systemOf is the operating system that a pod is made for.
func systemOf(pod *corev1.Pod) string {
	switch {
	case pod.Spec.OS != nil:
		return string(pod.Spec.OS.Name)
	case pod.Spec.NodeSelector[corev1.LabelOSStable] != "":
		return pod.Spec.NodeSelector[corev1.LabelOSStable]
	}
	return "linux"
}

// taintsOf says what the taints of a node do to a pod: those that stay before those that clear by themselves.
func taintsOf(pod *corev1.Pod, node *corev1.Node) ruling {
	answer := ruling{}
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		leaving, transient := kindOfTaint(taint)
		if taint.Key == corev1.TaintNodeUnschedulable && node.Spec.Unschedulable {
			continue // the shadow of the cordon, which the pod tolerates
		}
		switch tolerated := placement.Tolerates(pod.Spec.Tolerations, taint); {
		case leaving:
			return ruling{verdict: never, reason: fmt.Sprintf("is being removed (taint %s)", taint.ToString()), fix: "add a node"}
		case tolerated:
		case transient:
			answer = ruling{verdict: later, reason: fmt.Sprintf("has the taint %s for now, which is expected to clear by itself", taint.ToString())}
		default:
			return ruling{verdict: never, reason: fmt.Sprintf("has the taint %s, which the pod does not tolerate", taint.ToString()),
				fix: fmt.Sprintf("add a node without it, take it away (kubectl taint node NODE %s-), or write the toleration into the pod template yourself", taint.ToString())}
		}
	}
	return answer
}

// kindOfTaint asks package placement: of a node with this taint alone, whether it goes away even for who tolerates everything, and
// whether the taint clears by itself.
func kindOfTaint(taint corev1.Taint) (leaving, transient bool) {
	alone := []corev1.Node{{Spec: corev1.NodeSpec{Taints: []corev1.Taint{taint}}}}
	everything := placement.Rules{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	leaving = len(placement.Look(alone, everything).Excluded) > 0
	excluded := placement.Look(alone, placement.Rules{}).Excluded
	return leaving, len(excluded) > 0 && excluded[0].Transient
}

// roomOn compares what the pod wants with what the node has (allocatable, not capacity) and with what is free of it. Pods of the workload
// itself do not count as held: they go when the new ones come. What a node does not state is not known and not held against it, but
// for devices: a node without them states none.
func (l *setLook) roomOn(w *workload, node *corev1.Node, wanted corev1.ResourceList) ruling {
	held, slots := l.heldOn(w, node.Name)
	var small, taken []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		want := wanted[name]
		have, stated := node.Status.Allocatable[name]
		if want.IsZero() || !stated && (!isDevice(name) || len(node.Status.Allocatable) == 0) {
			continue
		}
		free := have.DeepCopy()
		free.Sub(held[name])
		switch {
		case have.Cmp(want) < 0:
			small = append(small, fmt.Sprintf("%s %s allocatable of %s wanted", name, have.String(), want.String()))
		case free.Cmp(want) < 0:
			taken = append(taken, fmt.Sprintf("%s %s free of %s wanted", name, notNegative(free), want.String()))
		}
	}
	if pods, stated := node.Status.Allocatable[corev1.ResourcePods]; stated {
		switch {
		case pods.Value() < 1:
			small = append(small, "pods 0 allocatable")
		case pods.Value() <= slots:
			taken = append(taken, fmt.Sprintf("pods %d/%d", slots, pods.Value()))
		}
	}
	switch {
	case len(small) > 0:
		return ruling{verdict: never, reason: "is too small (" + strings.Join(small, ", ") + ")", fix: "lower the requests, or add a larger node"}
	case len(taken) > 0:
		return ruling{verdict: full, reason: "has no room (" + strings.Join(taken, ", ") + ")", fix: "free room, lower the requests, or add a node"}
	}
	return ruling{}
}

func notNegative(q resource.Quantity) string {
	if q.Sign() < 0 {
		return "0"
	}
	return q.String()
}

// isDevice says whether a resource is one that only some nodes have.
func isDevice(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// heldOn is what the pods on a node hold, and how many there are, without those of the workload.
func (l *setLook) heldOn(w *workload, node string) (corev1.ResourceList, int64) {
	on := l.podsOn[node]
	if on == nil {
		return nil, 0
	}
	held, slots := on.sum, int64(len(on.pods))
	for _, pod := range on.pods {
		if !w.owns(pod) {
			continue
		}
		if slots == int64(len(on.pods)) {
			held = on.sum.DeepCopy()
		}
		slots--
		for name, amount := range requestsOf(pod) {
			rest := held[name]
			rest.Sub(amount)
			held[name] = rest
		}
	}
	return held, slots
}

// ended says whether a pod holds nothing any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// landing are the nodes that take the pod by their rules, now or when something clears by itself, whatever room they have.
func (l *setLook) landing(w *workload) []corev1.Node {
	pod := l.landingPod(w)
	var nodes []corev1.Node
	for i := range l.facts.Nodes {
		if v := ruleOf(pod, &l.facts.Nodes[i]).verdict; v == takes || v == later {
			nodes = append(nodes, l.facts.Nodes[i])
		}
	}
	return nodes
}
