package apply

import (
	"context"
	"errors"

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

func (e *StaleImageError) Error() string { return e.Layer.Name }

// Verify compares the images of a layer's pods, as strings, with the one it must run; pods that are being deleted do not count.
func Verify(ctx context.Context, client kubernetes.Interface, layer Layer) (Verified, error) {
	return Verified{}, errors.ErrUnsupported
}
