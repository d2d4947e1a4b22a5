package render

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// probeDir is where a probe's Harness sees what it reads through its environment alone. A kubelet starts no container of a pod before all that
// is mounted is there, and for the environment it does not wait.
const probeDir = "/etc/jr2/probe"

// ModelProbe renders a pod with a Harness and its Custodian, made of the Instance Harness's two images and nothing else, that lives for one
// question; and the ConfigMaps and Secrets that it reads. Those are copies under names that begin with the pod's, so that a probe can come
// before the Instance's own objects and changes none of them. What the configuration itself names, such as Secrets of harness.envFrom, is read
// where it is. The token of the Instance Harness is not in it. The caller sets what the Harness runs.
//
// It needs what Instance needs.
func ModelProbe(in Input, name string) (*corev1.Pod, []runtime.Object, error) {
	objects, err := Instance(in)
	if err != nil {
		return nil, nil, err
	}
	spec := *ptr(instanceHarnessPod(in)).DeepCopy() // some of it is the configuration's own
	spec.TerminationGracePeriodSeconds = ptr(int64(5))
	spec.RestartPolicy = corev1.RestartPolicyNever
	for i := range spec.InitContainers {
		beforeHarness(&spec.InitContainers[i])
	}
	harness := &spec.Containers[0]
	harness.Ports, harness.ReadinessProbe = nil, nil
	harness.Resources = sized("50m", "128Mi", "256Mi")
	harness.VolumeMounts = withoutMount(harness.VolumeMounts, conversations)
	pod := &corev1.Pod{TypeMeta: kind("v1", "Pod"), ObjectMeta: in.meta(name), Spec: spec}
	return pod, ownCopies(in, &pod.Spec, name, objects), nil
}

// beforeHarness has the Harness wait until a sidecar answers: its question is asked once.
func beforeHarness(sidecar *corev1.Container) {
	if sidecar.ReadinessProbe == nil {
		return
	}
	sidecar.StartupProbe, sidecar.ReadinessProbe = sidecar.ReadinessProbe, nil
	sidecar.StartupProbe.InitialDelaySeconds, sidecar.StartupProbe.PeriodSeconds, sidecar.StartupProbe.FailureThreshold = 0, 1, 60
}

func withoutMount(mounts []corev1.VolumeMount, volume string) []corev1.VolumeMount {
	var kept []corev1.VolumeMount
	for _, mount := range mounts {
		if mount.Name != volume {
			kept = append(kept, mount)
		}
	}
	return kept
}

// ownCopies has the pod read copies of those of the objects that it reads, and returns them.
func ownCopies(in Input, spec *corev1.PodSpec, name string, objects []runtime.Object) []runtime.Object {
	originals := map[readRef]runtime.Object{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			originals[readRef{"ConfigMap", o.Name}] = o
		case *corev1.Secret:
			originals[readRef{"Secret", o.Name}] = o
		}
	}
	// A Custodian wants a token, which a probe has no use for.
	originals[readRef{"Secret", names.InstanceSecret}] = in.secret(names.InstanceSecret, map[string]config.Secret{
		names.KeyHarnessToken: config.NewSecret(config.StandIn(names.SandboxTokenName))})
	var copies []runtime.Object
	mounted, copied := map[readRef]bool{}, map[readRef]bool{}
	each := func(kind string, of *string, mounts bool) {
		original := readRef{kind, *of}
		object, ours := originals[original]
		if !ours {
			return
		}
		*of = name + "-" + *of
		mounted[original] = mounted[original] || mounts
		if !copied[original] {
			copied[original] = true
			copies = append(copies, renamed(object, *of))
		}
		if !mounted[original] {
			mounted[original] = true
			mountFor(spec, original, *of)
		}
	}
	volumeReferences(spec, each)
	environmentReferences(spec, each)
	return copies
}

type readRef struct{ kind, name string }

func renamed(object runtime.Object, name string) runtime.Object {
	copied := object.DeepCopyObject()
	copied.(metav1.Object).SetName(name)
	return copied
}

// mountFor mounts into the Harness what it reads through its environment.
func mountFor(spec *corev1.PodSpec, original readRef, name string) {
	volume := configVolume("probe-"+original.name, name)
	if original.kind == "Secret" {
		volume.VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: ptr(int32(0o440))}}
	}
	spec.Volumes = append(spec.Volumes, volume)
	harness := &spec.Containers[0]
	harness.VolumeMounts = append(harness.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: path.Join(probeDir, original.name), ReadOnly: true})
}

func volumeReferences(spec *corev1.PodSpec, each func(kind string, of *string, mounts bool)) {
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if volume.ConfigMap != nil {
			each("ConfigMap", &volume.ConfigMap.Name, true)
		}
		if volume.Secret != nil {
			each("Secret", &volume.Secret.SecretName, true)
		}
		if volume.Projected == nil {
			continue
		}
		for j := range volume.Projected.Sources {
			source := &volume.Projected.Sources[j]
			if source.ConfigMap != nil {
				each("ConfigMap", &source.ConfigMap.Name, true)
			}
			if source.Secret != nil {
				each("Secret", &source.Secret.Name, true)
			}
		}
	}
}

func environmentReferences(spec *corev1.PodSpec, each func(kind string, of *string, mounts bool)) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, env := range containers[i].Env {
				if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
					each("ConfigMap", &env.ValueFrom.ConfigMapKeyRef.Name, false)
				}
				if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
					each("Secret", &env.ValueFrom.SecretKeyRef.Name, false)
				}
			}
			for _, from := range containers[i].EnvFrom {
				if from.ConfigMapRef != nil {
					each("ConfigMap", &from.ConfigMapRef.Name, false)
				}
				if from.SecretRef != nil {
					each("Secret", &from.SecretRef.Name, false)
				}
			}
		}
	}
}
