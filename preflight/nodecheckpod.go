package preflight

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkContainer is the one container of a pod of a check.
const checkContainer = "check"

// toMessage is how a script begins: what it prints becomes the message with which its container ended, in the pod's status, so that nobody needs
// the right to read logs. A kubelet keeps 4096 bytes.
const toMessage = "exec >/dev/termination-log 2>&1\n"

// pod is one that runs a script on a node and ends. The node is chosen by affinity and not by name, so that the scheduler says why it can't be;
// it tolerates what is set on the node on purpose, as kubectl debug does, and not that the node is away.
func (r *nodeChecking) pod(node *corev1.Node, script string, args ...string) *corev1.Pod {
	var now int64
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: nodeCheckName},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &now,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			HostNetwork:                   true,
			DNSPolicy:                     corev1.DNSDefault,
			Tolerations:                   tolerationsOf(node),
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}}}}}}},
			Containers: []corev1.Container{{
				Name:            checkContainer,
				Image:           r.Image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"sh", "-c", toMessage + script, checkContainer},
				Args:            args,
			}},
		},
	}
	for _, name := range r.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

func tolerationsOf(node *corev1.Node) []corev1.Toleration {
	away := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeOutOfService}
	var tolerations []corev1.Toleration
	for _, taint := range node.Spec.Taints {
		if !slices.Contains(away, taint.Key) {
			tolerations = append(tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
		}
	}
	return tolerations
}
