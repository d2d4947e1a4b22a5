package render

import (
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace renders the Namespace of the Instance, with its owner label alone: all else on it belongs to the cluster's owner.
func Namespace(in Input) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   kind("v1", "Namespace"),
		ObjectMeta: metav1.ObjectMeta{Name: in.namespace(), Labels: map[string]string{names.LabelInstance: in.Instance.Name}},
	}
}

// Allowance is what the configuration gives the Sandboxes of the Instance, as the operator reads it on the Namespace.
func Allowance(in Input) v1alpha1.Allowance {
	return v1alpha1.Allowance{
		PriorityClassName: in.sandboxClass(), NodeSelector: in.Instance.Sandbox.NodeSelector, Tolerations: in.Instance.Sandbox.Tolerations,
	}
}
