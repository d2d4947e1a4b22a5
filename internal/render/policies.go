package render

import (
	"jr2.dev/jr2/internal/names"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// policies let only the Orchestrator of this Instance talk to Sandboxes and to the Instance Harness. They say nothing about ports
// and nothing about egress, and they are there even while no such pod is.
func policies(in Input) []runtime.Object {
	return []runtime.Object{
		in.ingress(names.SandboxIngress, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: names.LabelSandbox, Operator: metav1.LabelSelectorOpExists}}}),
		in.ingress(names.HarnessIngress, metav1.LabelSelector{MatchLabels: map[string]string{names.LabelApp: names.InstanceHarnessName}}),
	}
}

func (in Input) ingress(name string, pods metav1.LabelSelector) *networkingv1.NetworkPolicy {
	from := &metav1.LabelSelector{MatchLabels: map[string]string{names.LabelApp: names.Orchestrator, names.LabelInstance: in.Instance.Name}}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   kind("networking.k8s.io/v1", "NetworkPolicy"),
		ObjectMeta: in.meta(name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: from}}}},
		},
	}
}
