package apply

import (
	"context"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// claimRead bounds the read of a StorageClass, which holds up the loop.
const claimRead = 5 * time.Second

// readClaim lets a claim pass that its class binds only when the first pod uses it: a wave that waited for it would never come to the pod.
func (w *waiter) readClaim(o *unstructured.Unstructured, status Status) Status {
	class := text(dig(o.Object, "spec", "storageClassName"))
	if class == "" {
		return status
	}
	late, known := w.late[class]
	if !known {
		ctx, cancel := context.WithTimeout(w.ctx, claimRead)
		defer cancel()
		found, err := w.cluster.typed.StorageV1().StorageClasses().Get(ctx, class, metav1.GetOptions{})
		switch c := Classify(err); {
		case c == ClassNotFound:
			status.Message += fmt.Sprintf(": the cluster has no StorageClass %q", class)
			return status
		case c == ClassForbidden:
			late = w.saysLate(ctx, o)
			if !late {
				return status // its event may come later
			}
		case err != nil:
			return status
		default:
			late = found.VolumeBindingMode != nil && *found.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
		}
		w.late[class] = late
	}
	if !late {
		return status
	}
	return Status{Done: true, Message: status.Message, Note: fmt.Sprintf("the class %q binds it when the first pod uses it", class)}
}

// saysLate reads from the claim's events what its class would tell.
func (w *waiter) saysLate(ctx context.Context, o *unstructured.Unstructured) bool {
	list, err := w.cluster.typed.CoreV1().Events(o.GetNamespace()).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=PersistentVolumeClaim,reason=" + string(storagev1.VolumeBindingWaitForFirstConsumer) + ",involvedObject.name=" + o.GetName(),
	})
	return err == nil && len(list.Items) > 0
}
