package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/placement/v1alpha1"
)

// make makes what the Sandbox lacks: first its Service, so that a Sandbox which can't have one takes no room, then its pod. What refuses
// is in the observation; an error is worth another try.
func (r *sandboxes) make(ctx context.Context, o *observation) error {
	var err error
	if o.service, err = r.hasService(ctx, o.box); err != nil {
		return err
	}
	if o.service && o.pod != nil {
		return nil
	}
	key := client.ObjectKeyFromObject(o.box)
	last, refused := r.pace.get(key, o.box.Generation)
	if refused && last.at.After(o.now) && !(last.hint && r.mayFit(ctx, o.box.Namespace, last.refusal)) {
		o.refusal = &last.refusal
		return nil
	}
	r.pace.try(key)
	// Before a create the Sandbox is read from the API server: the one in hand may be from a time before its pod was made.
	fresh := new(v1alpha1.Sandbox)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.box), fresh); err != nil || fresh.ResourceVersion != o.box.ResourceVersion {
		if err == nil || apierrors.IsNotFound(err) {
			err = errMoved
		}
		return err
	}
	if err := r.createAll(ctx, o); err != nil {
		return err
	}
	if o.refusal == nil {
		r.pace.forget(key)
		return nil
	}
	since := o.now
	if refused {
		since = last.since
	} else if c := meta.FindStatusCondition(o.box.Status.Conditions, v1alpha1.ConditionScheduled); o.pod == nil && c != nil && c.Status == metav1.ConditionFalse {
		since = c.LastTransitionTime.Time // refused before this process began
	}
	r.pace.refused(key, pacing{
		refusal: *o.refusal, created: o.box.CreationTimestamp.Time, generation: o.box.Generation,
		since: since, at: o.now.Add(retryAfter(since, o.now)), lag: r.lag(ctx, o, last.lag),
	})
	return nil
}

// lag is how long to wait for the API server. A quota that shows room for what it refused has just changed, and the API server hears of it
// in a moment. 0 when the refusal is as fresh as what is seen here.
func (r *sandboxes) lag(ctx context.Context, o *observation, last time.Duration) time.Duration {
	if o.refusal.reason != v1alpha1.ReasonQuotaExceeded || !r.quotas || !r.mayFit(ctx, o.box.Namespace, *o.refusal) {
		return 0
	}
	return min(max(2*last, firstLag), maxRetry)
}

// createAll creates what is missing, up to the first refusal.
func (r *sandboxes) createAll(ctx context.Context, o *observation) error {
	if o.pod == nil {
		refused, err := r.allowed(ctx, o.box)
		if o.refusal = refused; err != nil || refused != nil {
			return err
		}
	}
	if !o.service {
		if err := r.create(ctx, o, Service(o.box)); err != nil || o.refusal != nil {
			return err
		}
		o.service = true
	}
	if o.pod == nil {
		pod := Pod(o.box, holdersOf(o.repos))
		if err := r.create(ctx, o, pod); err != nil || o.refusal != nil {
			return err
		}
		o.pod = pod
	}
	return nil
}

// hasService says whether the Sandbox's own Service is there.
func (r *sandboxes) hasService(ctx context.Context, box *v1alpha1.Sandbox) (bool, error) {
	service := new(corev1.Service)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(box), service)
	if apierrors.IsNotFound(err) && box.Status.ServiceRef != nil { // the cache may be behind
		err = r.live.Get(ctx, client.ObjectKeyFromObject(box), service)
	}
	return err == nil && metav1.IsControlledBy(service, box), client.IgnoreNotFound(err)
}

// create creates a pod or a Service; the object is then as the API server has it. One that is there already is taken where the Sandbox
// owns it: it was made before, and the answer or what was to be written then got lost.
func (r *sandboxes) create(ctx context.Context, o *observation, object client.Object) error {
	err := r.client.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		if o.refusal = refusalOf(err); o.refusal != nil {
			return nil
		}
		return err
	}
	kind, there := "Service", client.Object(new(corev1.Service))
	if _, isPod := object.(*corev1.Pod); isPod {
		kind, there = "pod", new(corev1.Pod)
	}
	key := client.ObjectKeyFromObject(o.box)
	if err := r.live.Get(ctx, key, there); err != nil {
		if apierrors.IsNotFound(err) { // it went in the meantime
			return fmt.Errorf("%s %s was there and is not", kind, key)
		}
		return err
	}
	if !metav1.IsControlledBy(there, o.box) {
		o.refusal = &refusal{v1alpha1.ReasonNameTaken, fmt.Sprintf("a %s named %q is there and does not belong to this Sandbox%s", kind, there.GetName(), ownerOf(there))}
		return nil
	}
	switch object := object.(type) {
	case *corev1.Pod:
		there.(*corev1.Pod).DeepCopyInto(object)
	case *corev1.Service:
		there.(*corev1.Service).DeepCopyInto(object)
	}
	return nil
}

// ownerOf says to whom an object belongs, to be put after a sentence; "" when to nobody.
func ownerOf(object client.Object) string {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return ""
	}
	return fmt.Sprintf(" but to the %s %q with the UID %s", owner.Kind, owner.Name, owner.UID)
}
