package warm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"jr2.dev/jr2/placement"
)

// imagesName is what the DaemonSet is called after the prefix.
const imagesName = "warm-images"

// imageMount is where each container sees its image.
const imageMount = "/image"

// Images are references that every Sandbox node keeps pulled, in any order and spelling, as pods of Sandboxes name them. None keeps none.
type Images []string

// Objects are the DaemonSet that keeps the images pulled where Sandboxes land, or nothing where there is no image. A reference that can't be
// read is an *ImageError.
//
// Each pod mounts every image as an image volume, read-only, in a container of its own that sleeps: no command of the images runs, so they
// may be without a shell; one that can't be pulled keeps no other from being pulled, and its container says why; and what a container mounts
// is in use for the kubelet's image collection. It needs what every Sandbox needs: Kubernetes 1.35 and a runtime with image volumes.
//
// The pods follow the node selector, the tolerations and the required node affinity of Sandboxes. What Sandboxes say about other pods is not
// for them: every Sandbox node is to have one. A tag that moves is pulled once per pod; see MovingTag.
func (i Images) Objects(home Home, sandboxes Sandboxes) ([]runtime.Object, error) {
	refs, err := i.sorted()
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	if home.Namespace == "" {
		return nil, ErrNoNamespace
	}
	return []runtime.Object{&appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: home.meta(imagesName, LabelImages),
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: home.selector(imagesName)},
			// Nobody waits for a pod of these, so all nodes may pull at once.
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr(intstr.FromString("100%"))},
			},
			RevisionHistoryLimit: ptr(int32(1)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: home.labels(imagesName, LabelImages)},
				Spec:       imagesPod(home, sandboxes.Rules, refs),
			},
		},
	}}, nil
}

func imagesPod(home Home, rules placement.Rules, refs []string) corev1.PodSpec {
	var containers []corev1.Container
	var volumes []corev1.Volume
	for n, ref := range refs {
		name := fmt.Sprintf("image-%d", n)
		container := home.Sleeper.container(name, next())
		container.VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: imageMount, ReadOnly: true}}
		containers = append(containers, container)
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: ref, PullPolicy: corev1.PullIfNotPresent}}})
	}
	spec := home.pod(containers...)
	spec.Volumes = volumes
	place(&spec, placement.Rules{NodeSelector: rules.NodeSelector, Tolerations: rules.Tolerations, Affinity: nodesOnly(rules.Affinity)})
	return spec
}

// next to nothing: a process that sleeps. The limits are what a runtime needs to start one.
func next() corev1.ResourceRequirements {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.ResourceRequirements{Requests: list("1m", "1Mi"), Limits: list("20m", "32Mi")}
}

// nodesOnly leaves what an affinity requires of nodes.
func nodesOnly(affinity *corev1.Affinity) *corev1.Affinity {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
	}}
}

// place writes rules into a pod that shares nothing with them. Sandboxes run on Linux, so what keeps a node ready for them does: a kubelet of
// another system would refuse the pod again and again.
func place(spec *corev1.PodSpec, rules placement.Rules) {
	rules.Write(spec)
	*spec = *spec.DeepCopy()
	if spec.NodeSelector[corev1.LabelOSStable] == "" {
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[corev1.LabelOSStable] = string(corev1.Linux)
	}
}

// sorted are the references, each image once: two spellings of one are one, and the first in order stays.
func (i Images) sorted() ([]string, error) {
	var refs []string
	seen := map[string]bool{}
	for _, ref := range slices.Sorted(slices.Values(i)) {
		whole, err := normal(ref)
		if err != nil {
			return nil, err
		}
		if !seen[whole] {
			refs = append(refs, ref)
		}
		seen[whole] = true
	}
	return refs, nil
}

// normal is the one spelling of a reference: "busybox" is "docker.io/library/busybox:latest".
func normal(ref string) (string, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", &ImageError{Ref: ref, Err: err}
	}
	return reference.TagNameOnly(named).String(), nil
}

// Check warns of references that do not stay what they are.
func (i Images) Check() ([]Warning, error) {
	refs, err := i.sorted()
	if err != nil {
		return nil, err
	}
	var warnings []Warning
	for _, ref := range refs {
		whole, _ := normal(ref) //nolint:errcheck // it was read above
		if !strings.HasSuffix(whole, ":latest") {
			continue
		}
		warnings = append(warnings, Warning{
			Code: MovingTag, Object: "image " + ref,
			Message: fmt.Sprintf("image %s is kept pulled as its tag stood when each node pulled it: a pod that always pulls, which is the default for this tag, waits for what is newer — name a version or a digest", ref),
			Fix:     "name " + ref + " by a version or a digest",
		})
	}
	return warnings, nil
}
