package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// carry turns the run that looked into one that does what it saw.
func (r *run) carry(p *Plan, opts Options) {
	r.opts = opts.withDefaults()
	r.opts.DryRun = false
	r.events.fn = opts.Events
	r.retry.limits = r.opts.Retry
	r.steps = map[Ref]Step{}
	for _, s := range p.Steps {
		r.steps[s.Ref.key()] = s
	}
}

// planned returns the step for an object, when a plan is carried out and it was made for a version of the object.
func (r *run) planned(ref Ref) (Step, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.steps[ref.key()]
	return s, ok && s.version != ""
}

// plannedToGo says that no plan is carried out, or that it has the object go: what came to be deletable after the look stays.
func (r *run) plannedToGo(ref Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps == nil || r.steps[ref.key()].Intent == WillPrune
}

// plannedToBeMadeAgain says that no plan is carried out, or that it has the object deleted and made again.
func (r *run) plannedToBeMadeAgain(ref Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps == nil || r.steps[ref.key()].Intent == WillRecreate
}

// forgetVersion is called when the object that the plan saw was deleted.
func (r *run) forgetVersion(ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.steps[ref.key()]; ok {
		s.version = ""
		r.steps[ref.key()] = s
	}
}

// A movedObject is an object to which something else would have to be done than the plan says.
type movedObject struct{ ref Ref }

func (e *movedObject) Error() string {
	return fmt.Sprintf("%s moved while the plan was carried out", e.ref)
}

// patchPlanned writes an object in the version that the plan saw. In another version it is looked at again: when the same is to be done,
// the caller's next try does it.
func (r *run) patchPlanned(ctx context.Context, at metadata.ResourceInterface, o order, s Step) (*metav1.PartialObjectMetadata, error) {
	sent := o
	if s.lean != nil {
		sent = s.lean()
	}
	got, err := r.patch(ctx, at, sent, s.version, s.force)
	if c := Classify(err); c != ClassStale && c != ClassConflict && c != ClassNotFound {
		return got, err
	}
	now, lookErr := r.getMeta(ctx, at, o.ref)
	if lookErr != nil {
		return nil, lookErr
	}
	r.live.put(o.ref, now)
	next := r.step(ctx, o)
	if next.version == "" || !s.sameAs(next) {
		return nil, final{&movedObject{o.ref}}
	}
	r.mu.Lock()
	r.steps[o.ref.key()] = next
	r.mu.Unlock()
	return nil, err
}
