package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// A stage is when an object that left the set is deleted: the lowest first.
type stage int

const (
	// stageServed is what somebody may have to let go of: custom resources, and whatever a finalizer holds that is not Kubernetes' own. Who does that
	// may be in the set itself, so all of it is waited for before anything else goes.
	stageServed stage = iota
	// stageDefinitions are CustomResourceDefinitions: their resources go with them, and are let go of by the same controllers.
	stageDefinitions
	// The others go in the reverse of the order in which kinds are made.
	stageOthers
)

// first says that what goes in the stage is waited for.
func (s stage) first() bool { return s < stageOthers }

// stageOf says when an object goes.
func stageOf(ref Ref, now *metav1.PartialObjectMetadata) stage {
	switch {
	case tierOf(ref) == tierKinds:
		return stageDefinitions
	case tierOf(ref) != tierNamespaces && (isCustom(ref) || slices.ContainsFunc(now.Finalizers, isForeignFinalizer)):
		return stageServed
	}
	return stageOthers + stage(tierCount-tierOf(ref))
}

// isCustom says that a kind is none of Kubernetes' own: a CustomResourceDefinition or an API server of somebody's serves it.
func isCustom(ref Ref) bool {
	switch ref.Group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return false
	}
	return !scheme.Scheme.IsGroupRegistered(ref.Group)
}

// isForeignFinalizer says that a finalizer is not one that Kubernetes' own controllers remove.
func isForeignFinalizer(name string) bool {
	switch name {
	case metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "kubernetes":
		return false
	}
	domain, _, _ := strings.Cut(name, "/")
	return domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// mayServe says that what lets go of custom resources may be this object, or may not do so without it: workloads, what they may do, and how they are
// called.
func mayServe(ref Ref) bool {
	switch tierOf(ref) {
	case tierWorkloads, tierWebhooks, tierKinds:
		return true
	}
	return ref.Group == "rbac.authorization.k8s.io" || ref.Group == "" && (ref.Kind == "ServiceAccount" || ref.Kind == "Service")
}

// inOrder sorts what leaves by the stages, and says of what goes later for what it waits.
func inOrder(all []departure) {
	slices.SortStableFunc(all, func(a, b departure) int { return cmp.Compare(a.stage, b.stage) })
	var served []Ref
	for i, d := range all {
		goes := d.action == Pruned
		switch {
		case d.stage.first() && (goes || d.action == Terminating):
			served = append(served, d.Ref)
		case goes && len(served) > 0 && mayServe(d.Ref):
			all[i].why = "after " + listed(served) + ", which it may serve"
		}
	}
}

// listed names the first few refs.
func listed(refs []Ref) string {
	const most = 3
	names := make([]string, 0, most)
	for _, ref := range refs[:min(len(refs), most)] {
		names = append(names, ref.String())
	}
	if more := len(refs) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// A RemovalError says that objects which left the set are still being deleted, so that what may serve them was kept. The next run goes on.
type RemovalError struct {
	// Held are the objects that are still being deleted, and what holds each.
	Held []ObjectResult
	// Kept are the objects that go when those are gone.
	Kept []Ref
	// After is how long they were waited for.
	After time.Duration
}

func (e *RemovalError) Error() string {
	var b strings.Builder
	for _, held := range e.Held {
		after := " after " + e.After.Round(time.Second).String()
		if held.Action != Terminating { // nobody waited for it
			after = ""
		}
		fmt.Fprintf(&b, "%s left the set, and%s %s. ", held.Ref, after, held.Why)
	}
	if len(e.Kept) > 0 {
		fmt.Fprintf(&b, "What may serve it is kept until then: %s. ", listed(e.Kept))
	}
	first := e.Held[0].Ref
	fmt.Fprintf(&b, "Look why it is held (%s), then run it again", strings.Replace(deleteCommand(first), "kubectl delete", "kubectl describe", 1))
	return b.String()
}

// awaitGone waits until what was deleted in a stage is gone, when something goes after it that it may need, or all of the set goes. held lists what is not: refused, or being deleted.
func (r *run) awaitGone(ctx context.Context, stage, later []departure) (held []ObjectResult, err error) {
	if !r.opts.withdraw && !slices.ContainsFunc(later, func(d departure) bool { return d.action == Pruned && mayServe(d.Ref) }) {
		return nil, nil
	}
	limit := r.opts.Ready.withDefaults().Timeout
	until := time.Now().Add(limit)
	failed := r.each(len(stage), func(i int) error {
		err := r.awaitOne(ctx, &stage[i], time.Until(until))
		if err != nil && ctx.Err() == nil { // nobody saw it go, so what may serve it stays
			stage[i].action, stage[i].forget = Terminating, false
			stage[i].why = "it is being deleted, and nobody could see whether it is gone: " + err.Error()
		}
		return err
	})
	if ctx.Err() != nil {
		return nil, failed
	}
	var kept []Ref
	for _, d := range stage {
		// What could not be deleted, though it is the set's, may need its server as well; what is kept for another reason is nobody's to remove.
		if d.action == Terminating || d.action == Kept && d.why == whyRefused {
			held = append(held, d.result())
		}
	}
	for _, d := range later {
		if d.action == Pruned {
			kept = append(kept, d.Ref)
		}
	}
	if len(held) == 0 {
		return nil, failed
	}
	return held, &RemovalError{Held: held, Kept: kept, After: limit}
}

// awaitOne waits until one object is gone. What holds it is told.
func (r *run) awaitOne(ctx context.Context, d *departure, limit time.Duration) error {
	if d.now == nil || d.action != Terminating && d.action != Pruned {
		return nil
	}
	at, err := r.cluster.at(ctx, d.Ref)
	if err != nil {
		return err
	}
	now, err := r.getMeta(ctx, at, d.Ref)
	if err != nil {
		return err
	}
	if now == nil || now.UID != d.now.UID {
		d.gone()
		return nil
	}
	d.now = now
	r.events.emit(Waiting{Ref: d.Ref, Reason: whyTerminating(d.now) + "; what goes after it waits", Since: time.Now()})
	err = waitGone(ctx, at, d.Ref, d.now.UID, max(limit, 0))
	if Classify(err) == ClassBeingDeleted {
		d.action, d.why, d.forget = Terminating, whyTerminating(d.now), false
		return nil
	}
	if err == nil {
		d.gone()
	}
	return err
}

// gone notes that a deleted object was seen to be gone.
func (d *departure) gone() { d.action, d.why, d.forget = Pruned, "", true }

// keepFor keeps what was to go after objects that are still there.
func keepFor(later []departure, held []ObjectResult) {
	if len(held) == 0 {
		return
	}
	refs := make([]Ref, len(held))
	for i, h := range held {
		refs[i] = h.Ref
	}
	for i := range later {
		if later[i].action == Pruned {
			later[i].action, later[i].why = Kept, "it goes when "+listed(refs)+" is gone, which it may serve"
		}
	}
}
