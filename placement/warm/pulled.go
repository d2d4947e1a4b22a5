package warm

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// A Presence says whether an image is on a node.
type Presence string

const (
	// Present images were on the node when its kubelet last spoke.
	Present Presence = "present"
	// Absent images were not.
	Absent Presence = "absent"
	// Unknown is what nobody has said: a kubelet lists only the largest images.
	Unknown Presence = "unknown"
)

// ListedImages is how many images a kubelet lists in its node's status by default, the largest first (source: nodeStatusMaxImages of the
// kubelet's configuration). A node that lists fewer is taken to list all; a kubelet that is told to list fewer than that makes what it leaves
// out look absent, unless a pod of Images on that node knows better.
const ListedImages = 50

// A NodeImages is what one node has of the images asked about.
type NodeImages struct {
	Node   string      `json:"node"`
	Images []NodeImage `json:"images"`
}

// All says whether all of them are there.
func (n NodeImages) All() bool {
	for _, image := range n.Images {
		if image.Presence != Present {
			return false
		}
	}
	return true
}

// A NodeImage is one image on one node.
type NodeImage struct {
	// Image as it was asked about.
	Image    string   `json:"image"`
	Presence Presence `json:"presence"`
	// Why is a clause; for what a kubelet could not pull its own words.
	Why string `json:"why,omitempty"`
}

// Pulled says of each node which of the images it has, in the order given: by the pods that keep them pulled there, where these know, else by
// what the node lists. Pods may be those of a whole cluster or namespace. A reference that can't be read is an *ImageError.
func Pulled(images Images, nodes []corev1.Node, pods []corev1.Pod) ([]NodeImages, error) {
	wanted := make([]string, len(images))
	for i, image := range images {
		whole, err := normal(image)
		if err != nil {
			return nil, err
		}
		wanted[i] = whole
	}
	kept := map[string]map[string]NodeImage{}
	for i := range pods {
		if pod := &pods[i]; pod.Labels[Label] == LabelImages && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			keeps(kept, pod)
		}
	}
	all := make([]NodeImages, len(nodes))
	for i := range nodes {
		all[i] = NodeImages{Node: nodes[i].Name, Images: make([]NodeImage, len(images))}
		listed := listedBy(&nodes[i])
		for n, image := range images {
			answer := better(kept[nodes[i].Name][wanted[n]], listed.answer(wanted[n]))
			answer.Image = image
			all[i].Images[n] = answer
		}
	}
	return all, nil
}

// better is the pod's answer, unless there is none or the node's list knows what the pod does not.
func better(kept, listed NodeImage) NodeImage {
	switch {
	case kept.Presence == "", listed.Presence == Present, kept.Presence == Unknown && listed.Presence != Unknown:
		return listed
	}
	return kept
}

// keeps notes what a pod of the DaemonSet says of its node. A container that runs has its image mounted.
func keeps(kept map[string]map[string]NodeImage, pod *corev1.Pod) {
	on := kept[pod.Spec.NodeName]
	if on == nil {
		on = map[string]NodeImage{}
		kept[pod.Spec.NodeName] = on
	}
	states := map[string]corev1.ContainerState{}
	for _, status := range pod.Status.ContainerStatuses {
		states[status.Name] = status.State
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Image == nil {
			continue
		}
		whole, err := normal(volume.Image.Reference)
		if err != nil || on[whole].Presence == Present {
			continue
		}
		switch state := states[volume.Name]; {
		case state.Running != nil:
			on[whole] = NodeImage{Presence: Present, Why: "pod " + pod.Name + " mounts it"}
		case state.Waiting != nil && strings.Contains(state.Waiting.Message, volume.Image.Reference):
			on[whole] = NodeImage{Presence: Absent, Why: words(state.Waiting)}
		case state.Waiting != nil: // what the sleeper waits for says nothing about the image
			on[whole] = NodeImage{Presence: Unknown, Why: words(state.Waiting)}
		default:
			on[whole] = NodeImage{Presence: Unknown, Why: "pod " + pod.Name + " has not said yet"}
		}
	}
}

func words(waiting *corev1.ContainerStateWaiting) string {
	if waiting.Message == "" {
		return waiting.Reason
	}
	return waiting.Reason + ": " + waiting.Message
}

// A listing is what a node lists.
type listing struct {
	names map[string]bool
	count int
}

// listedBy reads names and digests; each name with its tag and, beside it, the repository with the digest.
func listedBy(node *corev1.Node) listing {
	l := listing{names: map[string]bool{}, count: len(node.Status.Images)}
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if named, err := reference.ParseNormalizedNamed(name); err == nil {
				l.names[spelled(named)] = true
			}
		}
	}
	return l
}

func (l listing) answer(whole string) NodeImage {
	named, err := reference.ParseNormalizedNamed(whole)
	switch {
	case err == nil && l.names[spelled(named)]:
		return NodeImage{Presence: Present, Why: "the node lists it"}
	case l.count == 0:
		return NodeImage{Presence: Unknown, Why: "the node lists no image"}
	case l.count >= ListedImages:
		return NodeImage{Presence: Unknown, Why: fmt.Sprintf("the node lists its %d largest images, and it is not among them", l.count)}
	}
	return NodeImage{Presence: Absent, Why: "the node does not list it"}
}

// spelled is a name with its digest alone where it has one: a kubelet lists digests without tags.
func spelled(named reference.Named) string {
	if digested, ok := named.(reference.Digested); ok {
		return reference.TrimNamed(named).Name() + "@" + digested.Digest().String()
	}
	return named.String()
}
