package preflight

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/seed"
)

// PodCreator is the one call that the probe makes; client-go's PodInterface has it.
type PodCreator interface {
	Create(ctx context.Context, pod *corev1.Pod, opts metav1.CreateOptions) (*corev1.Pod, error)
}

// PodLevelResources asks the API server, by a dry run in the Instance's namespace, whether it keeps pod-level resources: an API
// server with the gate off drops the field without a word. A dry run that fails proves nothing; its error comes back and is no refusal.
func PodLevelResources(ctx context.Context, pods PodCreator, kubeContext, serverVersion string) ([]Finding, error) {
	returned, err := createDryRun(ctx, pods, podLevelProbe())
	if err != nil {
		return nil, fmt.Errorf("dry run of a pod with pod-level resources: %w", err)
	}
	return keptResources(returned, kubeContext, serverVersion), nil
}

func keptResources(returned *corev1.Pod, kubeContext, serverVersion string) []Finding {
	if returned.Spec.Resources != nil && len(returned.Spec.Resources.Limits) > 0 {
		return nil
	}
	return []Finding{{
		Severity: Refuse,
		Code:     CodePodLevelResources,
		Object:   "cluster " + kubeContext,
		Message:  fmt.Sprintf(seed.RefusePodLevel, kubeContext, serverVersion),
		Fix:      "enable the PodLevelResources feature gate on the API server and kubelets",
	}}
}

// podLevelProbe is admitted by the restricted Pod Security level, and so small that a quota or a LimitRange rarely minds it.
func podLevelProbe() *corev1.Pod {
	yes, no := true, false
	user := int64(65532)
	tiny := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "jr2-probe-"},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: &no,
			Resources:                    &corev1.ResourceRequirements{Requests: tiny, Limits: tiny},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:  "probe",
				Image: "jr2.dev/probe:never-pulled",
				// Said here as well, because a LimitRange would fill in more than the pod may have.
				Resources: corev1.ResourceRequirements{Requests: tiny, Limits: tiny},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
