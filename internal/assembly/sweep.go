package assembly

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jr2.dev/jr2/internal/names"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sweep removes the chunks of the Assembly that this publish has pushed out of the pointer, and chunks that a publisher left behind
// when it was cut off, once they are old. The chunks were listed before the pointer was written, and each is removed only as it was
// listed: a publisher that relies on a chunk touches it first, so either it finds the chunk gone and writes it again, or the removal
// fails. A failure leaves rubbish and breaks nothing, so it is a warning.
func (p *ClusterPublisher) sweep(ctx context.Context, listed []metav1.ObjectMeta, old, now state) {
	for i := range listed {
		chunk := &listed[i]
		hash := chunk.Labels[names.LabelAssembly]
		if now.holds(hash) || !old.holds(hash) && !p.abandoned(chunk) || !p.isChunk(chunk, hash) {
			continue
		}
		err := p.client.CoreV1().ConfigMaps(p.namespace).Delete(ctx, chunk.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &chunk.UID, ResourceVersion: &chunk.ResourceVersion}})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || p.Warn == nil {
			continue
		}
		p.Warn(fmt.Errorf("remove ConfigMap %s/%s: %w", p.namespace, chunk.Name, err))
	}
}

// isChunk says that a publisher made what has the label of a chunk: it has a chunk's name, and is no ConfigMap of somebody else's.
func (p *ClusterPublisher) isChunk(o *metav1.ObjectMeta, hash string) bool {
	n, of := strings.CutPrefix(o.Name, names.AssemblyPointer+"-"+hash+"-")
	_, err := strconv.ParseUint(n, 10, 31)
	return of && err == nil && isHex(hash, 12) && p.owns(o)
}

// Bounds of the list of chunks: anybody may give their label to thousands of large ConfigMaps. What is beyond them stays.
const (
	chunksAtOnce = 20
	maxListed    = 1000
)

// listChunks lists the metadata of what has the label of chunks.
func (p *ClusterPublisher) listChunks(ctx context.Context) ([]metav1.ObjectMeta, error) {
	var all []metav1.ObjectMeta
	options := metav1.ListOptions{LabelSelector: names.LabelAssembly, Limit: chunksAtOnce}
	for {
		page, err := p.client.CoreV1().ConfigMaps(p.namespace).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			return all, nil // a list that lasts so long ends there
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			all = append(all, page.Items[i].ObjectMeta)
		}
		if options.Continue = page.Continue; options.Continue == "" || len(all) >= maxListed {
			return all, nil
		}
	}
}

// abandoned says whether nobody has relied on the chunk for so long that nobody will.
func (p *ClusterPublisher) abandoned(chunk *metav1.ObjectMeta) bool {
	last := chunk.CreationTimestamp.Time
	if touched, err := time.Parse(time.RFC3339Nano, chunk.Annotations[names.AnnotationTouched]); err == nil && touched.After(last) {
		last = touched
	}
	return p.now().Sub(last) >= p.orphanAge
}
