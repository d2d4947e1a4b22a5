package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A Layer is a part of a converge that runs one image.
type Layer struct {
	Name      string // for messages: "repo cache"
	Namespace string
	Selector  string // label selector of its pods: "app=jr2-repo-cache"
	// Container is the container to look at; all, when empty.
	Container string
	// Image is the ref that it must run.
	Image string
}

// Verified is what Verify saw. Pods 0 means that the rollout is complete and nothing runs, so that nothing was verified.
type Verified struct{ Pods int }

// A StaleImageError says that pods of a layer run another image than the converge deployed.
type StaleImageError struct {
	Layer Layer
	// Images are the other images, sorted, each once.
	Images []string
	// Pods are the names of the pods that carry them, sorted.
	Pods []string
}

func (e *StaleImageError) Error() string {
	carried := "no container " + e.Layer.Container
	if len(e.Images) > 0 {
		carried = strings.Join(e.Images, ", ")
	}
	return fmt.Sprintf("%s: the rollout succeeded, but %s in namespace %s carry %s and not %s: the cluster serves code that this converge did not deploy. Restart the rollout (kubectl -n %s rollout restart) and re-run.",
		e.Layer.Name, strings.Join(e.Pods, ", "), e.Layer.Namespace, carried, e.Layer.Image, e.Layer.Namespace)
}

// Verify compares the images of a layer's pods, as strings, with the one it must run; pods that are being deleted or have ended do
// not count. String equality is enough, because every tag is a content address or a version that does not move.
func Verify(ctx context.Context, client kubernetes.Interface, layer Layer) (Verified, error) {
	list, err := client.CoreV1().Pods(layer.Namespace).List(ctx, metav1.ListOptions{LabelSelector: layer.Selector})
	if err != nil {
		return Verified{}, fmt.Errorf("%s: the pods of %s could not be listed: %w", layer.Name, layer.Selector, err)
	}
	var seen Verified
	images, pods := map[string]bool{}, map[string]bool{}
	for _, p := range list.Items {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		seen.Pods++
		stale, fits := staleImages(p, layer)
		for _, image := range stale {
			images[image] = true
		}
		if len(stale) > 0 || !fits {
			pods[p.Name] = true
		}
	}
	if len(pods) > 0 {
		return seen, &StaleImageError{Layer: layer, Images: slices.Sorted(maps.Keys(images)), Pods: slices.Sorted(maps.Keys(pods))}
	}
	return seen, nil
}

// staleImages lists the images of the pod that are not the layer's; fits says that a container to look at was there.
func staleImages(p corev1.Pod, layer Layer) (stale []string, fits bool) {
	for _, c := range p.Spec.Containers {
		if layer.Container != "" && c.Name != layer.Container {
			continue
		}
		fits = true
		if c.Image != layer.Image {
			stale = append(stale, c.Image)
		}
	}
	return stale, fits
}
