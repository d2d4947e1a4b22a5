package preflight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/placement"
)

// Schedulability warns of workloads whose pod no node takes, with the reason for each group of nodes, by the scheduler's own rules: see
// placement.Explain. When only something that clears by itself is in the way, it is a Note. No toleration is ever added.
//
// It looks at one pod of each workload at a time, beside what runs in the cluster and not beside what else arrives; and not at where volumes
// are.
func Schedulability(objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	return append(l.unread, l.schedulability()...)
}

func (l *setLook) schedulability() []Finding {
	if len(l.workloads) == 0 {
		return nil
	}
	findings := l.runtimeClasses()
	if l.facts.Nodes == nil {
		return append(findings, notLooked("nodes", "the nodes were not read, so nobody looked whether one takes the pods of this set"))
	}
	var foreign []string
	for _, w := range l.workloads {
		switch {
		case w.replicas == 0 || w.pod.Spec.NodeName != "": // no pod, or one that no scheduler places
		case w.pod.Spec.SchedulerName != "" && w.pod.Spec.SchedulerName != "default-scheduler":
			foreign = append(foreign, fmt.Sprintf("%s (%s)", w.object, w.pod.Spec.SchedulerName))
		default:
			findings = append(findings, l.place(w)...)
		}
	}
	if len(foreign) > 0 {
		findings = append(findings, notLooked("nodes", "schedulers with rules of their own place the pods of "+several(foreign)+", so nobody looked whether a node takes them"))
	}
	if l.facts.Pods == nil {
		findings = append(findings, notLooked("pods", "the running pods were not read, so every node was taken to be empty"))
	}
	return findings
}

// place is what to say about one workload.
func (l *setLook) place(w *workload) []Finding {
	finding := Finding{Severity: Warn, Code: CodeUnschedulable, Object: w.object}
	if len(l.facts.Nodes) == 0 {
		finding.Fix = "add a node"
		finding.Message = fmt.Sprintf("%s: its pods will stay Pending, because the cluster has no node — add one", w.object)
		return []Finding{finding}
	}
	explained := l.explain(w)
	switch best := explained.Best(); {
	case best == placement.Usable:
		return nil
	case best == placement.Soon:
		finding.Severity, finding.Code = Note, CodeNotSchedulableYet
		finding.Message = fmt.Sprintf("%s: no node takes its pods yet: %s — wait", w.object, why(explained))
	case w.kind == "DaemonSet": // one for nodes that the cluster does not have yet is no mistake
		finding.Severity = Note
		finding.Message = fmt.Sprintf("%s: no node takes its pods, so it has none: %s", w.object, why(explained))
	default:
		which := "no node takes its pods"
		if best == placement.Full {
			which = "no node has a place for one of its pods now"
		}
		finding.Fix = fixOf(explained)
		finding.Message = fmt.Sprintf("%s: %s, so they will stay Pending: %s — %s", w.object, which, why(explained), finding.Fix)
	}
	return []Finding{finding}
}

// why says each reason once, with the nodes that have it, also of a pod that a gate holds.
func why(explained placement.Explanation) string {
	explained.Gates = nil
	return explained.Why()
}

// fixOf joins what to do about the reason of each node, each once. A taint that could be tolerated brings the word that nobody does so unasked.
func fixOf(explained placement.Explanation) string {
	var fixes []string
	tolerate := false
	for i := range explained.Nodes {
		node := &explained.Nodes[i]
		at := slices.IndexFunc(node.Reasons, func(r placement.Reason) bool { return r.Answer == node.Answer })
		if at < 0 {
			continue
		}
		if fix := fixFor(node.Node, &node.Reasons[at]); fix != "" && !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
		tolerate = tolerate || node.Reasons[at].Code == placement.ReasonTaint
	}
	joined := strings.Join(fixes, "; or ")
	if tolerate {
		joined += " (no toleration is added for you)"
	}
	return joined
}

// fixFor is what to do about one reason; "" when there is nothing to do but to wait.
func fixFor(node string, reason *placement.Reason) string {
	switch reason.Code {
	case placement.ReasonCordoned:
		return "kubectl uncordon " + node
	case placement.ReasonTaint:
		return fmt.Sprintf("add a node without it, take it away (kubectl taint node NODE %s-), or write the toleration into the pod template yourself", reason.Taint)
	case placement.ReasonLeaving:
		return "add a node"
	case placement.ReasonLabel:
		return "label a node (kubectl label node NODE " + reason.Label + "), or correct the nodeSelector"
	case placement.ReasonAffinity:
		return "correct the required node affinity, or label a node to match it"
	case placement.ReasonSystem:
		return "add a node that runs the pod's operating system"
	case placement.ReasonTooSmall:
		return "lower the requests, or add a larger node"
	case placement.ReasonNoRoom, placement.ReasonSlots:
		return "free room, lower the requests, or add a node"
	case placement.ReasonPort:
		return "free the host port, or add a node"
	case placement.ReasonSpread, placement.ReasonSpreadKey:
		return "correct topologySpreadConstraints, or add a node where they want one"
	case placement.ReasonNotBeside, placement.ReasonNotWanted:
		return "add a node, or correct the pod anti-affinity"
	case placement.ReasonNoNeighbor:
		return "start first what the pod affinity wants to be with, or correct it"
	}
	return ""
}
