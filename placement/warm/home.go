package warm

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement"
)

// A Home says where the objects live and what they are called.
type Home struct {
	// Namespace of the DaemonSet and of the Deployment. Required.
	Namespace string
	// Prefix of the objects' names; "jr2" when empty.
	Prefix string
	// Labels are added to those of every object and pod.
	Labels map[string]string
	// Sleeper is what the pods run.
	Sleeper Sleeper
	// PullSecrets are names of Secrets in the namespace by which images are pulled: those that Sandboxes pull with, because a kubelet lets only
	// a pod with the same credentials use an image that was pulled with some.
	PullSecrets []string
}

// Sandboxes are what images and nodes are kept ready for.
type Sandboxes struct {
	// Share is what one asks of a node when nothing else is said. What is zero is as placement.KitShare.
	Share placement.Share
	// Rules are where they land.
	Rules placement.Rules
}

// share fills in what is not said.
func (s Sandboxes) share() placement.Share { return over(s.Share, placement.KitShare()) }

// over takes of each number the first that is not zero.
func over(share, other placement.Share) placement.Share {
	or := func(value, other int64) int64 {
		if value == 0 {
			return other
		}
		return value
	}
	return placement.Share{CPU: or(share.CPU, other.CPU), Memory: or(share.Memory, other.Memory), Disk: or(share.Disk, other.Disk)}
}

// Label is on every pod and object of this package; its value says what for.
const Label = "jr2.dev/warm"

// Values of Label.
const (
	LabelImages      = "images"
	LabelPlaceholder = "placeholder"
)

func (h Home) name(suffix string) string {
	if h.Prefix == "" {
		return names.ManagedBy + "-" + suffix
	}
	return h.Prefix + "-" + suffix
}

// selector selects the pods of one of the two workloads.
func (h Home) selector(suffix string) map[string]string {
	return map[string]string{names.LabelApp: h.name(suffix)}
}

// labels are those of an object and of its pods.
func (h Home) labels(suffix, value string) map[string]string {
	labels := maps.Clone(h.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{names.LabelManagedBy: names.ManagedBy, Label: value})
	maps.Copy(labels, h.selector(suffix))
	return labels
}

func (h Home) meta(suffix, value string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: h.name(suffix), Namespace: h.Namespace, Labels: h.labels(suffix, value)}
}

func (h Home) pullSecrets() []corev1.LocalObjectReference {
	var refs []corev1.LocalObjectReference
	for _, name := range h.PullSecrets {
		refs = append(refs, corev1.LocalObjectReference{Name: name})
	}
	return refs
}
