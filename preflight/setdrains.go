package preflight

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Drains does the arithmetic of nodes and replicas. Required anti-affinity on the host name puts one pod on a node: more replicas than
// nodes that take them warn; as many mean that a drain leaves one Pending, which is a Note; and a rollout that must make a new pod
// before it stops an old one warns when there is no node for it. A PodDisruptionBudget that never allows an eviction warns, and so do two that
// select the same pods; one that selects no workload of the set is a Note.
func Drains(objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	return append(l.unread, l.drains()...)
}

func (l *setLook) drains() []Finding {
	var findings []Finding
	unread := false
	for _, w := range l.workloads {
		term := apart(w)
		if term == nil || w.replicas < 2 {
			continue
		}
		if l.facts.Nodes == nil {
			unread = true
			continue
		}
		if len(l.facts.Nodes) > 0 { // a cluster without nodes is told as such
			findings = append(findings, spread(w, term, len(l.landing(w)))...)
		}
	}
	if unread {
		findings = append(findings, notLooked("nodes", "the nodes were not read, so nobody counted them against the replicas that must run on different ones"))
	}
	return append(findings, l.budgets()...)
}

// apart is the term by which no two pods of the workload may share a node; nil when there is none.
func apart(w *workload) *corev1.PodAffinityTerm {
	if !w.scaled() || w.pod.Spec.Affinity == nil || w.pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	terms := w.pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range terms {
		if term := &terms[i]; term.TopologyKey == corev1.LabelHostname && w.selects(term, w) {
			return term
		}
	}
	return nil
}

// spread compares replicas that must be apart with the nodes that take them.
func spread(w *workload, term *corev1.PodAffinityTerm, nodes int) []Finding {
	finding := Finding{Severity: Warn, Code: CodeAntiAffinity, Object: w.object}
	switch {
	case nodes == 0 || w.replicas < nodes:
		return nil
	case w.replicas > nodes:
		finding.Fix = fmt.Sprintf("add %s, or set replicas: %d", plural(w.replicas-nodes, "node"), nodes)
		finding.Message = fmt.Sprintf("%s: %d replicas must run on different nodes (required anti-affinity) and %s, so %d will stay Pending — %s",
			w.object, w.replicas, takeThem(nodes), w.replicas-nodes, finding.Fix)
	default:
		finding.Severity, finding.Code, finding.Fix = Note, CodeAntiAffinityDrain, "add a node"
		finding.Message = fmt.Sprintf("%s: %d replicas must run on different nodes (required anti-affinity) and %s: during a drain one pod stays Pending until its node is back — %s if that is one too few",
			w.object, w.replicas, takeThem(nodes), finding.Fix)
	}
	findings := []Finding{finding}
	// A key such as pod-template-hash lets a new pod stand beside an old one.
	if w.kind == "Deployment" && len(term.MatchLabelKeys) == 0 && w.rolls() && w.unavailable() == 0 {
		findings = append(findings, Finding{
			Severity: Warn, Code: CodeAntiAffinityRollout, Object: w.object, Fix: "set maxUnavailable: 1 in its rollingUpdate",
			Message: fmt.Sprintf("%s: a rollout cannot begin: its new pod must run apart from the %d old ones (required anti-affinity), %s, and no old pod may stop before it is there — set maxUnavailable: 1 in its rollingUpdate",
				w.object, w.replicas, takeThem(nodes)),
		})
	}
	return findings
}

func takeThem(nodes int) string {
	if nodes == 1 {
		return "1 node takes them"
	}
	return fmt.Sprintf("%d nodes take them", nodes)
}

// rolls says whether a Deployment replaces its pods step by step.
func (w *workload) rolls() bool {
	kind, _, err := unstructured.NestedString(w.source.Object, "spec", "strategy", "type")
	return err == nil && kind != "Recreate"
}

// unavailable is how many pods of a Deployment may be away during a rollout: 25 % rounded down when it is not said, and one
// when neither a surge nor an absence would be left. https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#max-unavailable
func (w *workload) unavailable() int {
	if !w.rolls() {
		return w.replicas
	}
	away := portion(w.rolling("maxUnavailable"), w.replicas, false)
	if away == 0 && portion(w.rolling("maxSurge"), w.replicas, true) == 0 {
		return 1
	}
	return away
}

func (w *workload) rolling(field string) intstr.IntOrString {
	value, ok, err := unstructured.NestedFieldNoCopy(w.source.Object, "spec", "strategy", "rollingUpdate", field)
	if !ok || err != nil {
		return intstr.FromString("25%")
	}
	switch v := value.(type) {
	case int64:
		return intstr.FromInt32(int32(v))
	case string:
		return intstr.FromString(v)
	}
	return intstr.FromString("25%")
}

// portion is a number, or a percentage of total; 0 for what is neither.
func portion(value intstr.IntOrString, total int, up bool) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&value, total, up)
	if err != nil {
		return 0
	}
	return n
}
