package assembly

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"jr2.dev/jr2/internal/names"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Read returns the current Assembly of a namespace, whole and checked against the pointer; (nil, nil) when there is none. It is the
// counterpart of ClusterPublisher: what an Orchestrator does when it starts and whenever the pointer moves. Errors: *BrokenError,
// *FormatError, and those of the API.
func Read(ctx context.Context, client kubernetes.Interface, namespace string) (*Assembly, error) {
	var broken error
	version := ""
	// A chunk may be gone because two publishes have passed since the pointer was read. Then the pointer has moved, and we read again.
	for range maxRaces {
		pointer, err := getPointer(ctx, client, namespace)
		if err != nil || pointer == nil {
			return nil, err
		}
		if broken != nil && pointer.ResourceVersion == version {
			return nil, broken
		}
		version = pointer.ResourceVersion
		s, err := stateOf(pointer)
		if err != nil || s.Current == nil {
			return nil, err
		}
		a, err := fetch(ctx, client, namespace, s.Current)
		if err == nil {
			return a, nil
		}
		if !isBroken(err) {
			return nil, err
		}
		broken = err
	}
	return nil, broken
}

// BrokenError says that the current Assembly is not whole in the cluster: a chunk is missing or holds other bytes. Publishing the
// Assembly again repairs it. ErrInvalid is in its chain.
type BrokenError struct {
	Hash string
	// Why says what is wrong.
	Why string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("assembly: %s is current and is not whole in the cluster: %s", e.Hash, e.Why)
}

func (e *BrokenError) Unwrap() error { return ErrInvalid }

func isBroken(err error) bool {
	_, ok := err.(*BrokenError)
	return ok
}

// fetch reads the chunks of a record and checks what they make.
func fetch(ctx context.Context, client kubernetes.Interface, namespace string, r *record) (*Assembly, error) {
	var archive bytes.Buffer
	for n := range r.Chunks {
		chunk, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, chunkName(r.Hash, n), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, &BrokenError{r.Hash, "ConfigMap " + chunkName(r.Hash, n) + " is missing"}
		}
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, chunkName(r.Hash, n), err)
		}
		archive.Write(chunk.BinaryData[keyData])
		if archive.Len() > r.Size {
			break
		}
	}
	switch {
	case archive.Len() != r.Size:
		return nil, &BrokenError{r.Hash, fmt.Sprintf("its chunks do not hold the %d bytes that ConfigMap %s says", r.Size, names.AssemblyPointer)}
	case sum(archive.Bytes()) != r.SHA256:
		return nil, &BrokenError{r.Hash, "its bytes are not those that were published"}
	}
	a, err := Open(archive.Bytes())
	if err != nil {
		return nil, &BrokenError{r.Hash, err.Error()}
	}
	if a.Hash != r.Hash || !slices.Equal(a.Manifest.Workflows, r.Workflows) {
		return nil, &BrokenError{r.Hash, "its content is not what ConfigMap " + names.AssemblyPointer + " says"}
	}
	return a, nil
}
