package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"jr2.dev/jr2/placement/v1alpha1"
)

// byRepo is the index of Sandboxes by the keys of their Repos.
const byRepo = "spec.repos.key"

func addSandboxes(ctx context.Context, m manager.Manager, r *sandboxes) error {
	err := m.GetFieldIndexer().IndexField(ctx, &v1alpha1.Sandbox{}, byRepo, func(object client.Object) []string {
		var keys []string
		if box, ok := object.(*v1alpha1.Sandbox); ok {
			for _, repo := range box.Spec.Repos {
				keys = append(keys, repo.Key)
			}
		}
		return keys
	})
	if err != nil {
		return err
	}
	b := builder.ControllerManagedBy(m).Named("sandbox").
		For(&v1alpha1.Sandbox{}).
		Watches(&corev1.Pod{}, r.onNamesake()).
		Watches(&corev1.Service{}, r.onNamesake()).
		Watches(&v1alpha1.Repo{}, handler.EnqueueRequestsFromMapFunc(r.usersOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.concurrency, RateLimiter: retryLimit()})
	if r.quotas {
		b = b.Watches(&corev1.ResourceQuota{}, r.onQuota())
	}
	return b.Complete(r)
}

func addRepos(m manager.Manager, r *repos) error {
	return builder.ControllerManagedBy(m).Named("repo").For(&v1alpha1.Repo{}).
		WithOptions(controller.Options{RateLimiter: retryLimit()}).Complete(r)
}

// onNamesake looks at the Sandbox of the name of a pod or a Service, whoever owns it: one that goes may have been in the way.
func (r *sandboxes) onNamesake() handler.EventHandler {
	add := func(object client.Object, q queue) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.pace.hint(client.ObjectKeyFromObject(e.Object))
			add(e.Object, q)
		},
	}
}

// usersOf are the Sandboxes that want a Repo.
func (r *sandboxes) usersOf(ctx context.Context, repo client.Object) []reconcile.Request {
	var boxes v1alpha1.SandboxList
	err := r.client.List(ctx, &boxes, client.InNamespace(repo.GetNamespace()), client.MatchingFields{byRepo: repo.GetName()})
	if err != nil {
		return nil // only a cache that has ended says so
	}
	requests := make([]reconcile.Request, len(boxes.Items))
	for i := range boxes.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&boxes.Items[i])
	}
	return requests
}
