package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"jr2.dev/jr2/placement/v1alpha1"
)

// sandboxes reconciles Sandboxes.
type sandboxes struct {
	// client reads from the cache of what is watched, and writes.
	client client.Client
	// live reads from the API server, where a decision can't be taken back.
	live  client.Reader
	clock clock.PassiveClock
	pace  *pace
	// quotas says that ResourceQuotas are watched.
	quotas      bool
	concurrency int
}

// errMoved says that the Sandbox in hand is older than the one that the API server has.
var errMoved = errors.New("the Sandbox has moved on")

// maxMoves is how often a reconcile starts again at once before it waits for the cache.
const maxMoves = 3

// Reconcile makes what is missing and writes down what is there.
func (r *sandboxes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	box := new(v1alpha1.Sandbox)
	var reader client.Reader = r.client
	for range maxMoves {
		if err := reader.Get(ctx, request.NamespacedName, box); err != nil {
			if apierrors.IsNotFound(err) {
				r.pace.forget(request.NamespacedName)
			}
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		again, err := r.step(ctx, box)
		if !errors.Is(err, errMoved) {
			return reconcile.Result{RequeueAfter: again}, err
		}
		reader, box = r.live, new(v1alpha1.Sandbox)
	}
	return reconcile.Result{RequeueAfter: minRetry}, nil
}

// step does what one state of a Sandbox asks for. again is when to look next if nothing happens, 0 for never.
func (r *sandboxes) step(ctx context.Context, box *v1alpha1.Sandbox) (again time.Duration, err error) {
	now := r.clock.Now()
	idle, lapses := idleAt(box)
	if lapses && box.DeletionTimestamp == nil && !idle.After(now) {
		return 0, r.deleteIdle(ctx, box)
	}
	if lapses {
		again = idle.Sub(now)
	}
	o, next, err := r.observe(ctx, box)
	if errors.Is(err, errMoved) {
		return 0, err
	}
	// What was seen is written even when not all could be seen.
	return sooner(again, next), errors.Join(err, r.write(ctx, o))
}

// sooner is the shorter of two times, of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// deleteIdle deletes the Sandbox that was seen. One that was used in the meantime has another resource version and stays.
func (r *sandboxes) deleteIdle(ctx context.Context, box *v1alpha1.Sandbox) error {
	log.FromContext(ctx).Info("delete an idle Sandbox", "idleTimeout", box.Spec.IdleTimeout.Duration)
	uid, version := box.UID, box.ResourceVersion
	err := r.client.Delete(ctx, box, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) {
		return errMoved
	}
	return client.IgnoreNotFound(err)
}

// observe reads, and makes, what the status of the Sandbox is about.
func (r *sandboxes) observe(ctx context.Context, box *v1alpha1.Sandbox) (o observation, again time.Duration, err error) {
	o = observation{box: box, now: r.clock.Now()}
	if box.DeletionTimestamp != nil || isLost(&box.Status) {
		r.pace.forget(client.ObjectKeyFromObject(box))
		return o, 0, r.endSecond(ctx, box)
	}
	if o.repos, err = r.reposOf(ctx, box); err != nil {
		return o, 0, err
	}
	if o.pod, err = r.podOf(ctx, box); err != nil {
		return o, 0, err
	}
	if o.pod == nil && box.Status.PodUID != "" {
		o.nodeAway, err = r.nodeAway(ctx, box.Status.Node)
		return o, 0, err
	}
	if err := r.make(ctx, &o); err != nil {
		return o, 0, err
	}
	if last, refused := r.pace.get(client.ObjectKeyFromObject(box), box.Generation); refused && o.refusal != nil {
		again = last.again(o.now)
	}
	if o.pod != nil && o.pod.DeletionTimestamp != nil {
		o.nodeAway, err = r.nodeAway(ctx, o.pod.Spec.NodeName)
		again = sooner(again, max(o.pod.DeletionTimestamp.Sub(o.now), leavingCheck))
	}
	return o, again, err
}

// leavingCheck is how often a pod that is being deleted, and doesn't go, is asked whether its node still answers.
const leavingCheck = 10 * time.Second

// write writes the status if it changed.
func (r *sandboxes) write(ctx context.Context, o observation) error {
	next := o.box.DeepCopy()
	next.Status = nextStatus(o)
	if equality.Semantic.DeepEqual(o.box.Status, next.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(o.box, client.MergeFromWithOptimisticLock{})
	err := r.client.Status().Patch(ctx, next, patch)
	if apierrors.IsConflict(err) {
		return errMoved
	}
	return client.IgnoreNotFound(err)
}
