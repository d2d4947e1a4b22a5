package assembly

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"time"

	"jr2.dev/jr2/internal/names"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errRace says that the pointer or a chunk moved under a publisher; it starts again.
var errRace = errors.New("other publishers changed the current Assembly at the same time, again and again")

// Publish makes sure of every chunk, then writes the pointer on the condition that it has not moved, then removes the chunks that
// neither the current nor the previous Assembly needs. Publishing what is current writes the pointer only if it differs, so a publish that lost an
// answer starts again.
func (p *ClusterPublisher) Publish(ctx context.Context, a *Assembly) error {
	opened, err := Open(a.Archive)
	if err != nil {
		return err
	}
	if opened.Hash != a.Hash {
		return fmt.Errorf("%w: it says that its hash is %s and its content gives %s", ErrInvalid, a.Hash, opened.Hash)
	}
	lost := 0
	for range maxRaces {
		err = p.publish(ctx, a)
		if answerLost(err) && ctx.Err() == nil {
			if lost++; lost < maxLost {
				continue // it sees then what became of the write
			}
		}
		if !errors.Is(err, errRace) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("publish the Assembly %s: %w", a.Hash, err)
	}
	return nil
}

// maxLost bounds how often a publish starts again whose connection broke.
const maxLost = 4

// answerLost says that nobody knows what became of a request: no answer came, or not all of it.
func answerLost(err error) bool {
	var broke *url.Error
	return errors.As(err, &broke) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (p *ClusterPublisher) publish(ctx context.Context, a *Assembly) error {
	pointer, err := getPointer(ctx, p.client, p.namespace)
	if err != nil {
		return err
	}
	var old state
	if pointer != nil {
		if err := p.claim(pointer); err != nil {
			return err
		}
		// A damaged pointer is replaced; one of another format is not ours to replace.
		if old, err = stateOf(pointer); err != nil && !errors.Is(err, ErrInvalid) {
			return err
		}
	}
	// The list comes before the pointer is written: what anybody touches after it has another resourceVersion than we ask to delete.
	before, err := p.listChunks(ctx)
	if err != nil {
		return fmt.Errorf("list the chunks in %s: %w", p.namespace, err)
	}
	current := recordOf(a, p.chunkSize)
	for n := range current.Chunks {
		end := min((n+1)*p.chunkSize, len(a.Archive))
		if err := p.ensureChunk(ctx, a.Hash, n, a.Archive[n*p.chunkSize:end]); err != nil {
			return err
		}
	}
	next := old.after(current)
	if pointer == nil || !reflect.DeepEqual(old, next) {
		if err := p.point(ctx, pointer, next, nil); err != nil {
			return err
		}
	}
	p.sweep(ctx, before, old, next)
	return nil
}

// point writes the pointer, if it is still the one that was read. dry is the request's dryRun.
func (p *ClusterPublisher) point(ctx context.Context, pointer *corev1.ConfigMap, next state, dry []string) error {
	configMaps := p.client.CoreV1().ConfigMaps(p.namespace)
	if pointer == nil {
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: names.AssemblyPointer, Namespace: p.namespace, Labels: p.labels}}
		if err := next.write(created); err != nil {
			return err
		}
		_, err := configMaps.Create(ctx, created, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry})
		if apierrors.IsAlreadyExists(err) {
			return errRace
		}
		return err
	}
	pointer = pointer.DeepCopy()
	if pointer.Labels == nil {
		pointer.Labels = map[string]string{}
	}
	maps.Copy(pointer.Labels, p.labels)
	if err := next.write(pointer); err != nil {
		return err
	}
	_, err := configMaps.Update(ctx, pointer, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dry})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errRace
	}
	return err
}

// ensureChunk makes sure that a chunk is there and holds the bytes. One that is there is touched, so that no publisher that saw it
// before removes it; one with other bytes is replaced.
func (p *ClusterPublisher) ensureChunk(ctx context.Context, hash string, n int, data []byte) error {
	configMaps := p.client.CoreV1().ConfigMaps(p.namespace)
	for range maxRaces {
		_, err := configMaps.Create(ctx, p.chunk(hash, n, data), metav1.CreateOptions{FieldManager: fieldManager})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		found, err := configMaps.Get(ctx, chunkName(hash, n), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = p.claim(found)
		}
		if err != nil {
			return err
		}
		found, err = configMaps.Patch(ctx, chunkName(hash, n), types.MergePatchType, p.touch(), metav1.PatchOptions{FieldManager: fieldManager})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if bytes.Equal(found.BinaryData[keyData], data) && found.Labels[names.LabelAssembly] == hash {
			return nil
		}
		err = configMaps.Delete(ctx, found.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &found.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return errRace
}

// keyData is the key of a chunk that holds its bytes.
const keyData = "data"

func (p *ClusterPublisher) chunk(hash string, n int, data []byte) *corev1.ConfigMap {
	labels := map[string]string{}
	maps.Copy(labels, p.labels)
	labels[names.LabelAssembly] = hash
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: chunkName(hash, n), Namespace: p.namespace, Labels: labels,
			Annotations: map[string]string{names.AnnotationTouched: p.timestamp()},
		},
		Immutable:  &immutable,
		BinaryData: map[string][]byte{keyData: data},
	}
}

func (p *ClusterPublisher) timestamp() string { return p.now().UTC().Format(time.RFC3339Nano) }

func (p *ClusterPublisher) touch() []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{names.AnnotationTouched: p.timestamp()}}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return patch
}
