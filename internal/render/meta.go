package render

import (
	"maps"

	"jr2.dev/jr2/internal/names"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labels are those of every namespaced object of the Instance.
func (in Input) labels(more ...string) map[string]string {
	return with(map[string]string{names.LabelInstance: in.Instance.Name, names.LabelManagedBy: names.ManagedBy}, more...)
}

// meta is the metadata of a namespaced object of the Instance; more are keys and values of further labels.
func (in Input) meta(name string, more ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: in.namespace(), Labels: in.labels(more...)}
}

// with returns a copy of the map with the given keys and values.
func with(labels map[string]string, more ...string) map[string]string {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for i := 0; i+1 < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func kind(apiVersion, name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: name}
}

func ptr[T any](v T) *T { return &v }

// sized gives a container's requests and its memory limit. No pod of ours has a cpu limit: what it asks for is what it gets when
// the node is full, and a limit would only slow it on an empty one.
func sized(cpu, memory, memoryLimit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memoryLimit)},
	}
}

// hardened is what Pod Security "restricted" asks of a container.
func hardened() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot:             ptr(true),
		AllowPrivilegeEscalation: ptr(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// hardenedPod is what "restricted" asks of a pod.
func hardenedPod() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func readOnlyRoot(sc *corev1.SecurityContext) *corev1.SecurityContext {
	sc.ReadOnlyRootFilesystem = ptr(true)
	return sc
}
