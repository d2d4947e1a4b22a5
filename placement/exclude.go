package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"jr2.dev/jr2/internal/seed"
)

// sandboxScreen reads rules once for many nodes. Its reasons name the configuration's fields.
func sandboxScreen(rules Rules) *screen {
	s := screenOf(&corev1.PodSpec{NodeSelector: rules.NodeSelector, Tolerations: rules.Tolerations, Affinity: rules.Affinity}, screenWords{
		selector:    seed.LacksLabel,
		otherValue:  "sandbox.nodeSelector",
		tolerations: "sandbox.tolerations does not tolerate",
		affinity:    "does not match the node affinity that the Sandbox requires",
		system:      "runs %[1]s, and a Sandbox is a Linux pod",
	})
	s.system = "linux"
	return s
}

// exclude says why a node takes no pod of these rules; false when it does take one.
func exclude(node *corev1.Node, s *screen) (Exclusion, bool) {
	if reason := lasting(node, s); reason != "" {
		return Exclusion{Node: node.Name, Reason: reason}, true
	}
	for _, reason := range s.appendTaints(nil, node) {
		if reason.Answer == Soon {
			return Exclusion{Node: node.Name, Reason: reason.Text, Transient: true}, true
		}
	}
	return Exclusion{}, false
}

// lasting returns the first reason that does not clear by itself, or "". A cordon and a node that goes keep out even who tolerates them:
// nobody wants a Sandbox there.
func lasting(node *corev1.Node, s *screen) string {
	if node.Spec.Unschedulable {
		return "is cordoned"
	}
	if reason, ok := s.otherSystem(node); ok {
		return reason.Text
	}
	if reason, ok := s.label(node); ok {
		return reason.Text
	}
	if !s.affine(node) {
		return s.words.affinity
	}
	for _, taint := range node.Spec.Taints {
		switch kind := kindOf(taint.Key); {
		case taint.Effect == corev1.TaintEffectPreferNoSchedule, kind == transientTaint:
		case kind == leavingTaint:
			return fmt.Sprintf("is being removed (taint %s)", show(taint))
		case repels(taint, s.tolerations):
			return fmt.Sprintf("has the taint %s, which %s", show(taint), s.words.tolerations)
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
