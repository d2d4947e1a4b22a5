package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"jr2.dev/jr2/placement/quota"
	"jr2.dev/jr2/placement/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// onQuota tries the Sandboxes again that a ResourceQuota refuses, when it shows that there may be room now, the oldest first.
func (r *sandboxes) onQuota() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, isQuota := e.ObjectOld.(*corev1.ResourceQuota)
			after, ok := e.ObjectNew.(*corev1.ResourceQuota)
			if isQuota && ok && !equality.Semantic.DeepEqual(before.Status, after.Status) {
				r.tryAgain(after, q, func(refused quota.Refusal) bool { return mayFit(refused, after) })
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.tryAgain(e.Object, q, func(quota.Refusal) bool { return true })
		},
	}
}

func (r *sandboxes) tryAgain(changed client.Object, q queue, fits func(quota.Refusal) bool) {
	waiting := r.pace.waiting(changed.GetNamespace(), func(last refusal) bool {
		refused, ok := quota.ParseRefusal(last.message)
		// Words that can't be read may be about any quota.
		return last.reason == v1alpha1.ReasonQuotaExceeded && (!ok || refused.Quota == changed.GetName() && fits(refused))
	})
	for _, name := range waiting {
		r.pace.hint(name)
		q.Add(reconcile.Request{NamespacedName: name})
	}
}

// mayFit says whether a quota shows room for what it refused. The amounts are those by which the API server decides.
func mayFit(refused quota.Refusal, now *corev1.ResourceQuota) bool {
	for name, requested := range refused.Requested {
		hard, limits := now.Status.Hard[name]
		if !limits {
			continue
		}
		sum := now.Status.Used[name].DeepCopy()
		sum.Add(requested)
		if sum.Cmp(hard) > 0 {
			return false
		}
	}
	return true
}

// mayFit asks the quota that refused as it is in the cache: of many that were hinted at, the first ones may have taken the room. It is
// true where nothing speaks against it.
func (r *sandboxes) mayFit(ctx context.Context, namespace string, last refusal) bool {
	refused, ok := quota.ParseRefusal(last.message)
	if !r.quotas || !ok {
		return true
	}
	now := new(corev1.ResourceQuota)
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: refused.Quota}, now)
	return err != nil || mayFit(refused, now)
}

// mayWatchQuotas asks the API server whether the controller may list and watch ResourceQuotas wherever it works. Without that right a
// refused pod is tried again by the clock alone.
func mayWatchQuotas(ctx context.Context, c client.Client, namespaces []string) (bool, error) {
	for _, namespace := range places(namespaces) {
		for _, right := range (need{"", "resourcequotas", []string{"list", "watch"}}).in(namespace) {
			if allowed, err := may(ctx, c, right); err != nil || !allowed {
				return false, err
			}
		}
	}
	return true, nil
}
