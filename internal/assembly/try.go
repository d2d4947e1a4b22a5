package assembly

import (
	"context"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/internal/names"
)

// A WriteError is a ConfigMap that can't be written.
type WriteError struct {
	// Name is that of the ConfigMap.
	Name string
	Err  error
}

func (e *WriteError) Error() string { return "ConfigMap " + e.Name + ": " + e.Err.Error() }
func (e *WriteError) Unwrap() error { return e.Err }

// Try makes the writes of a Publish by dry run: the first chunk, for all, and the pointer, if it would be written. It takes one read and two or three
// requests more. The error joins a *WriteError for each that was refused; nil also where somebody else published meanwhile.
func (p *ClusterPublisher) Try(ctx context.Context, a *Assembly) error {
	pointer, err := getPointer(ctx, p.client, p.namespace)
	if err != nil {
		return err
	}
	old := state{}
	if pointer != nil {
		if err := p.claim(pointer); err != nil {
			return err
		}
		if old, err = stateOf(pointer); err != nil && !errors.Is(err, ErrInvalid) {
			return err
		}
	}
	dry := []string{metav1.DryRunAll}
	current := recordOf(a, p.chunkSize)
	errs := []error{tried(chunkName(a.Hash, 0), p.tryChunk(ctx, a, dry))}
	if next := old.after(current); pointer == nil || !reflect.DeepEqual(old, next) {
		errs = append(errs, tried(names.AssemblyPointer, p.point(ctx, pointer, next, dry)))
	}
	return errors.Join(errs...)
}

func (p *ClusterPublisher) tryChunk(ctx context.Context, a *Assembly, dry []string) error {
	data := a.Archive[:min(p.chunkSize, len(a.Archive))]
	configMaps := p.client.CoreV1().ConfigMaps(p.namespace)
	_, err := configMaps.Create(ctx, p.chunk(a.Hash, 0, data), metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = configMaps.Patch(ctx, chunkName(a.Hash, 0), types.MergePatchType, p.touch(), metav1.PatchOptions{FieldManager: fieldManager, DryRun: dry})
	return err
}

func tried(name string, err error) error {
	if err == nil || errors.Is(err, errRace) || apierrors.IsNotFound(err) {
		return nil
	}
	return &WriteError{Name: name, Err: err}
}
