package preflight

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// CodeImageVolumes is the stable code of a finding about an API server that drops the image volumes of pods.
const CodeImageVolumes = "image-volumes"

// PodFeatures asks, by the one dry run of PodLevelResources, for both that the pod of a Sandbox can't do without: pod-level resources, and the
// image volume that brings the runtime. A version that has them (Floor) is not enough: up to 1.35 both can be turned off at the API server, which
// then drops the field without a word. Whether kubelets and runtimes have them is the affair of NodeVersions.
//
// A dry run that fails proves nothing; its error comes back and is no refusal.
func PodFeatures(ctx context.Context, pods PodCreator, kubeContext, serverVersion string) ([]Finding, error) {
	const volume = "runtime"
	probe := podLevelProbe()
	probe.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: probe.Spec.Containers[0].Image}}}}
	probe.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: "/runtime", ReadOnly: true}}
	returned, err := createDryRun(ctx, pods, probe)
	if err != nil {
		return nil, fmt.Errorf("dry run of a pod with pod-level resources and an image volume: %w", err)
	}
	return append(keptResources(returned, kubeContext, serverVersion), keptImageVolume(returned, volume, kubeContext, serverVersion)...), nil
}

func keptImageVolume(returned *corev1.Pod, name, kubeContext, serverVersion string) []Finding {
	for _, v := range returned.Spec.Volumes {
		if v.Name == name && v.Image != nil {
			return nil
		}
	}
	fix := "enable the ImageVolume feature gate on the API server and kubelets"
	return []Finding{{
		Severity: Refuse, Code: CodeImageVolumes, Object: "cluster " + kubeContext, Fix: fix,
		Message: fmt.Sprintf("refusing: %s (Kubernetes %s) drops image volumes — the ImageVolume feature gate is off, and a Sandbox would start without its runtime. E%s. The namespace was created; nothing else was applied.",
			kubeContext, serverVersion, fix[1:]),
	}}
}
