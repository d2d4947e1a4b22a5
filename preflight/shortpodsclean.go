package preflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/holder"
)

// left says whether an object of a check has nobody any more: its process has ended, or its time is long over. The server's clock may differ
// from ours, which the ages allow for.
func (r *shortPods) left(object *metav1.ObjectMeta, age time.Duration) bool {
	return object.DeletionTimestamp == nil && (holder.Gone(object.Annotations[r.label+holderSuffix]) || time.Since(object.CreationTimestamp.Time) > age)
}

// sweep removes what checks before this one left behind.
func (r *shortPods) sweep(ctx context.Context) error {
	list, err := r.pods.List(ctx, metav1.ListOptions{LabelSelector: r.label})
	if err != nil {
		return fmt.Errorf("look for leftovers of %s in namespace %s: %w", r.what, r.namespace, err)
	}
	for i := range list.Items {
		old := &list.Items[i]
		age := leftoverAge
		if old.Spec.ActiveDeadlineSeconds != nil {
			age = 2*time.Duration(*old.Spec.ActiveDeadlineSeconds)*time.Second + 5*time.Minute
		}
		if r.left(&old.ObjectMeta, age) {
			if err := r.remove(ctx, old); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove ends a pod without delay; that is no loss for one that only looks.
func (r *shortPods) remove(ctx context.Context, pod *corev1.Pod) error {
	var now int64
	exactly := metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	if err := gone(r.pods.Delete(ctx, pod.Name, exactly)); err != nil {
		return fmt.Errorf("remove pod %s/%s of %s: %w", r.namespace, pod.Name, r.what, err)
	}
	return nil
}

// gone is nil when what was to be removed is not there, or is another by now.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// removeAll removes every pod of this check, also one whose creation was answered by no one. What fails comes with err.
func (r *shortPods) removeAll(ctx context.Context, err error) error {
	list, failed := r.pods.List(ctx, metav1.ListOptions{LabelSelector: r.label + "=" + r.id})
	if failed != nil {
		return errors.Join(err, fmt.Errorf("look for pods of %s in namespace %s: %w", r.what, r.namespace, failed))
	}
	for i := range list.Items {
		err = errors.Join(err, r.remove(ctx, &list.Items[i]))
	}
	return err
}
