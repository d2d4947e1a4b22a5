package preflight

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
)

// slimPods lists pods as the checks want them. What nobody looks at goes with each page, so that a list of thousands is not held whole.
type slimPods struct {
	placement.Lister[*corev1.PodList]
}

func (s slimPods) List(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	page, err := s.Lister.List(ctx, options)
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		slim(&page.Items[i])
	}
	return page, nil
}

// slim keeps of a pod what placement reckons with and what the Pod Security Standards look at.
func slim(pod *corev1.Pod) {
	pod.ManagedFields = nil
	for key := range pod.Annotations {
		if !strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) {
			delete(pod.Annotations, key)
		}
	}
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Command, c.Args, c.Env, c.EnvFrom, c.VolumeMounts, c.VolumeDevices = nil, nil, nil, nil, nil, nil
		}
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i].EphemeralContainerCommon
		c.Command, c.Args, c.Env, c.EnvFrom, c.VolumeMounts, c.VolumeDevices = nil, nil, nil, nil, nil, nil
	}
	for i := range spec.Volumes { // the kind of each stays
		v := &spec.Volumes[i]
		switch {
		case v.Projected != nil:
			v.Projected = &corev1.ProjectedVolumeSource{}
		case v.ConfigMap != nil:
			v.ConfigMap = &corev1.ConfigMapVolumeSource{}
		case v.Secret != nil:
			v.Secret = &corev1.SecretVolumeSource{}
		case v.DownwardAPI != nil:
			v.DownwardAPI = &corev1.DownwardAPIVolumeSource{}
		}
	}
	slimStatus(&pod.Status)
}

// slimStatus keeps what the kubelet has given to the pod, and whether a resize of it is under way.
func slimStatus(status *corev1.PodStatus) {
	for i := range status.Conditions {
		status.Conditions[i].Message = ""
	}
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			*s = corev1.ContainerStatus{Name: s.Name, Ready: s.Ready, Started: s.Started, Resources: s.Resources, AllocatedResources: s.AllocatedResources}
		}
	}
	status.EphemeralContainerStatuses = nil
}
