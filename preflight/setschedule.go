package preflight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Schedulability warns of workloads whose pod no node takes, with the reason for each group of nodes: cordons, taints, node selectors,
// required node affinity, and requests against what a node can give, by the scheduler's own rules. When only something that clears by
// itself is in the way, it is a Note. No toleration is ever added.
//
// It looks at one pod of each workload at a time, and not at affinity to other pods, topology spread, host ports, or where volumes
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
	all := l.rulings(w)
	if all == nil {
		return nil
	}
	best := never
	for _, r := range all {
		best = min(best, r.verdict)
	}
	reasons := groupReasons(all)
	switch {
	case best == later:
		finding.Severity, finding.Code = Note, CodeNotSchedulableYet
		finding.Message = fmt.Sprintf("%s: no node takes its pods yet: %s — wait", w.object, reasons)
		return []Finding{finding}
	case w.kind == "DaemonSet": // one for nodes that the cluster does not have yet is no mistake
		finding.Severity = Note
		finding.Message = fmt.Sprintf("%s: no node takes its pods, so it has none: %s", w.object, reasons)
		return []Finding{finding}
	}
	finding.Fix = fixOf(all)
	which := "no node takes its pods"
	if best == full {
		which = "no node has room for one of its pods now"
	}
	finding.Message = fmt.Sprintf("%s: %s, so they will stay Pending: %s — %s", w.object, which, reasons, finding.Fix)
	return []Finding{finding}
}

// groupReasons says each reason once, with the nodes that have it: "cp-1, cp-2: has the taint …; w-1: is cordoned".
func groupReasons(all []ruling) string {
	nodes := map[string][]string{}
	var order []string
	for _, r := range all {
		if nodes[r.reason] == nil {
			order = append(order, r.reason)
		}
		nodes[r.reason] = append(nodes[r.reason], r.node)
	}
	parts := make([]string, len(order))
	for i, reason := range order {
		parts[i] = few(nodes[reason]) + ": " + reason
	}
	return strings.Join(parts, "; ")
}

// fixOf joins the fixes, each once. A taint that could be tolerated brings the word that nobody does so unasked.
func fixOf(all []ruling) string {
	var fixes []string
	tolerate := false
	for _, r := range all {
		if r.fix != "" && !slices.Contains(fixes, r.fix) {
			fixes = append(fixes, r.fix)
		}
		tolerate = tolerate || strings.Contains(r.fix, "toleration")
	}
	joined := strings.Join(fixes, "; or ")
	if tolerate {
		joined += " (no toleration is added for you)"
	}
	return joined
}
