package render

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// TestModelProbe: the pod is made of the two images, reads copies and nothing of the Instance's own, has no token, and leaves the configuration as it
// is. What the configuration names is read where it is.
func TestModelProbe(t *testing.T) {
	in := review(t)
	in.Instance.Harness.EnvFrom = append(in.Instance.Harness.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "theirs"}}})
	before := append([]corev1.EnvFromSource(nil), in.Instance.Harness.EnvFrom...)
	pod, objects, err := ModelProbe(in, "probe-1")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in.Instance.Harness.EnvFrom, before) || in.Instance.Harness.EnvFrom[len(before)-1].SecretRef.Name != "theirs" {
		t.Error("the configuration was changed")
	}
	if len(pod.Spec.InitContainers) != 1 || len(pod.Spec.Containers) != 1 || pod.Spec.InitContainers[0].Image != in.Kit.Custodian || pod.Spec.Containers[0].Image != in.Kit.Harness {
		t.Errorf("containers %+v, %+v", pod.Spec.InitContainers, pod.Spec.Containers)
	}
	if pod.Spec.InitContainers[0].StartupProbe == nil || pod.Spec.Containers[0].ReadinessProbe != nil {
		t.Error("the Harness does not wait for the Custodian, or the cluster for the Harness")
	}
	made := map[string]bool{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			made[o.Name] = true
		case *corev1.Secret:
			made[o.Name] = true
			if token, has := o.Data[names.KeyHarnessToken]; has && string(token) != config.StandIn(names.SandboxTokenName) {
				t.Errorf("%s holds a token", o.Name)
			}
			if len(o.Data[names.KeySigningKey])+len(o.Data[names.KeyInstanceToken]) > 0 {
				t.Errorf("%s holds keys of the Instance", o.Name)
			}
		default:
			t.Errorf("a %T is made", object)
		}
	}
	read := map[string]bool{}
	note := func(_ string, of *string, _ bool) { read[*of] = true }
	volumeReferences(&pod.Spec, note)
	environmentReferences(&pod.Spec, note)
	for name := range read {
		if !made[name] && !slices.Contains(theirs(in), name) {
			t.Errorf("%s is read and not made", name)
		}
	}
	for name := range made {
		if !read[name] || !strings.HasPrefix(name, "probe-1-jr2-") {
			t.Errorf("%s is made and not read, or under another's name", name)
		}
	}
	mounts := map[string]bool{}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, mount := range container.VolumeMounts {
			mounts[mount.Name] = true
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if !mounts[volume.Name] {
			t.Errorf("volume %s is mounted nowhere, so nobody waits for it", volume.Name)
		}
		delete(mounts, volume.Name)
	}
	if len(mounts) > 0 {
		t.Errorf("mounts without a volume: %v", mounts)
	}
}

// theirs are the names of objects that the configuration names.
func theirs(in Input) []string {
	var all []string
	for _, from := range in.Instance.Harness.EnvFrom {
		if from.SecretRef != nil {
			all = append(all, from.SecretRef.Name)
		}
		if from.ConfigMapRef != nil {
			all = append(all, from.ConfigMapRef.Name)
		}
	}
	for _, env := range in.Instance.Harness.Env {
		if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
			all = append(all, env.ValueFrom.SecretKeyRef.Name)
		}
		if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
			all = append(all, env.ValueFrom.ConfigMapKeyRef.Name)
		}
	}
	for _, held := range in.Instance.Secrets {
		if held.ValueFrom != nil {
			all = append(all, held.ValueFrom.Name)
		}
	}
	return all
}
