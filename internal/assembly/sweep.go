package assembly

import (
	"context"
	"fmt"
	"time"

	"jr2.dev/jr2/internal/names"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sweep removes the chunks of the Assembly that this publish has pushed out of the pointer, and chunks that a publisher left behind
// when it was cut off, once they are old. The chunks were listed before the pointer was written, and each is removed only as it was
// listed: a publisher that relies on a chunk touches it first, so either it finds the chunk gone and writes it again, or the removal
// fails. A failure leaves rubbish and breaks nothing, so it is a warning.
func (p *ClusterPublisher) sweep(ctx context.Context, listed []corev1.ConfigMap, old, now state) {
	for i := range listed {
		chunk := &listed[i]
		hash := chunk.Labels[names.LabelAssembly]
		if now.holds(hash) || !old.holds(hash) && !p.abandoned(chunk) {
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

// abandoned says whether nobody has relied on the chunk for so long that nobody will.
func (p *ClusterPublisher) abandoned(chunk *corev1.ConfigMap) bool {
	last := chunk.CreationTimestamp.Time
	if touched, err := time.Parse(time.RFC3339Nano, chunk.Annotations[names.AnnotationTouched]); err == nil && touched.After(last) {
		last = touched
	}
	return p.now().Sub(last) >= p.orphanAge
}
