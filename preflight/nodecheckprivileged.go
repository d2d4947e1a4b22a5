package preflight

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PrivilegedPods asks the API server by a dry run whether it would let a privileged pod, on the host's network and with its processes, into a
// namespace that is at the privileged Pod Security level. It writes nothing. A refusal means that an admission controller blocks privileged pods
// (source: seed, "Check the cluster"), or that the namespace is at a higher level; an answer that says neither is an error. A pod that comes back
// with less than was asked for is blocked as well.
func PrivilegedPods(ctx context.Context, pods PodCreator, namespace string) ([]Finding, error) {
	returned, err := createPatiently(ctx, func(ctx context.Context) (*corev1.Pod, error) {
		return createDryRun(ctx, pods, privilegedProbe())
	})
	if err == nil {
		if keptPrivilege(returned) {
			return nil, nil
		}
		return []Finding{blocked(namespace, "the pod came back without its privilege", "")}, nil
	}
	refused, ok := refusalOf(err)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
	case ok && refused.class == refusedPodSecurity:
		return []Finding{blocked(namespace, refused.words, fmt.Sprintf("kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged --overwrite", namespace))}, nil
	case ok && (refused.class == refusedByPolicy || refused.class == refusedOther):
		// What refuses a pod without privilege too says nothing about privilege: a LimitRange, a policy about names.
		if _, plain := createDryRun(ctx, pods, plainProbe()); plain != nil {
			return nil, fmt.Errorf("dry run of a pod in namespace %s, which has no privilege: %w", namespace, plain)
		}
		return []Finding{blocked(namespace, refused.words, "")}, nil
	}
	return nil, fmt.Errorf("dry run of a privileged pod in namespace %s: %w", namespace, err)
}

// blocked is the finding; without a fix it is the admission controller that has to change.
func blocked(namespace, words, fix string) Finding {
	what := "an admission controller blocks privileged pods"
	if fix != "" {
		what = fmt.Sprintf("namespace %s is not at the privileged Pod Security level", namespace)
	} else {
		fix = "let the admission controller admit privileged pods in that namespace"
	}
	return Finding{
		Severity: Warn, Code: CodePrivilegedPods, Object: "Namespace " + namespace,
		Message: fmt.Sprintf("%s (asked in namespace %s): %s — %s", what, namespace, words, fix),
		Fix:     fix,
	}
}

func privilegedProbe() *corev1.Pod {
	yes, no := true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: nodeCheckName},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, HostNetwork: true, HostPID: true,
			Containers: []corev1.Container{{
				Name: checkContainer, Image: "jr2.dev/probe:never-pulled", SecurityContext: &corev1.SecurityContext{Privileged: &yes},
			}},
		},
	}
}

// plainProbe has nothing that anybody could mind, and asks for as much as the privileged one: nothing.
func plainProbe() *corev1.Pod {
	pod := podLevelProbe()
	pod.Spec.Resources, pod.Spec.Containers[0].Resources = nil, corev1.ResourceRequirements{}
	return pod
}

func keptPrivilege(pod *corev1.Pod) bool {
	for _, container := range pod.Spec.Containers {
		if security := container.SecurityContext; container.Name == checkContainer && security != nil && security.Privileged != nil {
			return *security.Privileged && pod.Spec.HostNetwork && pod.Spec.HostPID
		}
	}
	return false
}
