package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"jr2.dev/jr2/internal/seed"
)

// exclude says why a node takes no pod of these rules; false when it does take one.
func exclude(node corev1.Node, rules Rules) (Exclusion, bool) {
	if reason := lasting(node, rules); reason != "" {
		return Exclusion{Node: node.Name, Reason: reason}, true
	}
	for _, taint := range node.Spec.Taints {
		if kindOf(taint.Key) == transientTaint && repels(taint, rules.Tolerations) {
			reason := fmt.Sprintf("has the taint %s for now; it is expected to clear by itself", show(taint))
			return Exclusion{Node: node.Name, Reason: reason, Transient: true}, true
		}
	}
	return Exclusion{}, false
}

// lasting returns the first reason that does not clear by itself, or "".
func lasting(node corev1.Node, rules Rules) string {
	if node.Spec.Unschedulable {
		return "is cordoned"
	}
	if system := node.Status.NodeInfo.OperatingSystem; system != "" && !strings.EqualFold(system, "linux") {
		return fmt.Sprintf("runs %s, and a Sandbox is a Linux pod", system)
	}
	for _, key := range slices.Sorted(maps.Keys(rules.NodeSelector)) {
		want := rules.NodeSelector[key]
		have, ok := node.Labels[key]
		if !ok {
			return fmt.Sprintf(seed.LacksLabel, key)
		}
		if have != want {
			return fmt.Sprintf("has the label %s=%s, and sandbox.nodeSelector requires %s=%s", key, have, key, want)
		}
	}
	for _, taint := range node.Spec.Taints {
		switch kind := kindOf(taint.Key); {
		case taint.Effect == corev1.TaintEffectPreferNoSchedule, kind == transientTaint:
		case kind == leavingTaint:
			return fmt.Sprintf("is being removed (taint %s)", show(taint))
		case repels(taint, rules.Tolerations):
			return fmt.Sprintf("has the taint %s, which sandbox.tolerations does not tolerate", show(taint))
		}
	}
	return ""
}

// repels says whether a taint keeps a pod with these tolerations off a node, by the scheduler's own rule.
func repels(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule && !Tolerates(tolerations, taint)
}

// Tolerates says whether one of the tolerations covers the taint. It is Kubernetes' rule, the operators Lt and Gt included: a
// cluster that does not know them refuses the pod that has them, so they never count for more than they do.
func Tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return helpers.TolerationsTolerateTaint(klog.Logger{}, tolerations, &taint, true)
}

// show writes a taint as kubectl takes it: key=value:effect, without "=value" when there is none.
func show(taint corev1.Taint) string { return taint.ToString() }
