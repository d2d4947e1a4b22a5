package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// writeObject makes one object as asked, and returns what it did and what the inventory is to keep.
func (r *run) writeObject(ctx context.Context, o order) (ObjectResult, record, error) {
	if o.mints() {
		return r.writeMinted(ctx, o)
	}
	if err := r.seen(ctx, o.ref); err != nil {
		return ObjectResult{}, record{}, err
	}
	rec := r.inv.records[o.ref.key()]
	now := r.live.get(o.ref)
	if now != nil && o.joined {
		return ObjectResult{Ref: o.ref, UID: string(now.UID), Action: Unchanged, Why: whyJoined}, record{}, nil
	}
	if now != nil && (r.proven(o, now, rec) || r.heldAlready(ctx, o, now)) {
		rec.Ref = o.ref
		return ObjectResult{Ref: o.ref, UID: string(now.UID), Action: Unchanged}, rec, nil
	}
	if o.spent(now, rec) {
		rec.Ref = o.ref
		return ObjectResult{Ref: o.ref, Action: Unchanged, Why: whySpent}, rec, nil
	}
	if r.opts.DryRun {
		result, err := r.rehearse(ctx, o)
		return result, record{}, err
	}
	if now != nil && now.DeletionTimestamp != nil {
		if err := r.waitOut(ctx, o.ref, now); err != nil {
			return ObjectResult{}, record{}, err
		}
		now = nil
	}
	if s, ok := r.leftAlone(ctx, o, now); ok {
		return ObjectResult{Ref: o.ref, UID: string(s.uid), Action: Unchanged}, o.newRecord(s.compared, r.opts.FieldManager), nil
	}
	var d deed
	if now != nil {
		d.seen = now.UID
	}
	if now != nil && !o.wantedBefore(now, rec) {
		d.base = now
	}
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) error { return r.tryWrite(ctx, o, &d) })
	if err != nil {
		return ObjectResult{}, record{}, discreet(o, r.explain(ctx, o.ref, err))
	}
	if d.base != nil {
		now = d.base
	}
	result := ObjectResult{Ref: o.ref, UID: string(d.got.UID), Action: r.actionOf(o, now, d.got, rec)}
	if d.lost && result.Action == Unchanged && !o.wantedBefore(now, rec) { // the version that was compared may be that of our own write
		result.Action = Configured
	}
	if d.recreated {
		result.Action, result.Why = Recreated, whyRecreated(d.fields)
	}
	return result, o.newRecord(d.got, r.opts.FieldManager), nil
}

const whyJoined = "it was there before and holds all that is asked of it; the set does not own it"

// A deed is what the tries of one write did.
type deed struct {
	base      *metav1.PartialObjectMetadata // what the write is made onto, and no later version; nil when any will do
	got       *metav1.PartialObjectMetadata
	recreated bool
	lost      bool      // a write may have been done of which nobody heard
	seen      types.UID // of the object as it was looked at; empty when there was none
	fields    []string  // that could not be changed
}

// proven says that the metadata show an object to be as asked, and that this is proof enough.
func (r *run) proven(o order, now *metav1.PartialObjectMetadata, rec record) bool {
	return r.opts.Verify != VerifyFull && o.asAsked(now, rec, r.opts.FieldManager)
}

// leftAlone says that a dry run showed that a write would change nothing: that of the plan which is carried out, or one that the options
// ask for. Where it can't be made, the write itself tells.
func (r *run) leftAlone(ctx context.Context, o order, now *metav1.PartialObjectMetadata) (Step, bool) {
	if now == nil {
		return Step{}, false
	}
	r.mu.Lock()
	s, planned := r.steps[o.ref.key()]
	r.mu.Unlock()
	if !planned && r.opts.Verify == VerifyFull {
		s = r.step(ctx, o)
	}
	return s, s.Intent == WillLeave && s.compared != nil
}

// actionOf compares an object before and after the write. A write that changes nothing leaves the resourceVersion alone; when a
// controller wrote meanwhile, our own entry of the managed fields tells. It alone would not do: its time has steps of a second, so a
// new value right after the last one leaves the same entry, and only a different want shows it. Where a dry run looked first, there is a
// write only for a change.
func (r *run) actionOf(o order, before, after *metav1.PartialObjectMetadata, rec record) Action {
	switch {
	case before == nil || before.UID != after.UID:
		return Created
	case before.ResourceVersion == after.ResourceVersion:
		return Unchanged
	case r.opts.Verify != VerifyFull && o.wantedBefore(before, rec) && rec.stands(before, r.opts.FieldManager) && entryOf(before, r.opts.FieldManager) == entryOf(after, r.opts.FieldManager):
		return Unchanged
	}
	return Configured
}

// tryWrite sends one object once. An object that turns out to be on its way out is waited for and written again: a server-side apply
// onto it succeeds, and then it vanishes.
func (r *run) tryWrite(ctx context.Context, o order, d *deed) error {
	at, err := r.cluster.at(ctx, o.ref)
	if err != nil {
		return r.unmapped(o.ref, err)
	}
	if err := r.migrate(ctx, at, o.ref); err != nil {
		return err
	}
	var got *metav1.PartialObjectMetadata
	if s, ok := r.planned(o.ref); ok {
		got, err = r.patchPlanned(ctx, at, o, s)
	} else if got, err = r.patchSeen(ctx, at, o, d); Classify(err) == ClassConflict {
		got, err = r.takeOver(ctx, at, o)
	}
	switch Classify(err) {
	case ClassImmutable:
		got, err = r.recreate(ctx, at, o, err, d)
	case ClassUnavailable, ClassUnknown:
		d.lost = true
	}
	if Classify(err) == ClassNoMatch { // what the mapper knows is out of date
		r.cluster.mapper.reset()
		return r.noMatch(o.ref, err)
	}
	if err != nil {
		return err
	}
	if err := r.giveBack(ctx, at, o, d, got); err != nil {
		return err
	}
	if got.DeletionTimestamp != nil {
		if err := r.waitOut(ctx, o.ref, got); err != nil {
			return final{err}
		}
		return &ObjectError{Ref: o.ref, Class: ClassBeingDeleted, Err: errors.New("it was being deleted while it was written")}
	}
	d.got = got
	return nil
}

// seenTries is how often a write is made onto a version that was just seen. Only a controller that writes all the time is faster each time.
const seenTries = 3

// patchSeen writes what is asked for anew onto the version that was seen: then the versions tell whether the write changed anything, and other
// words for the same value do not. Without that, a controller that wrote meanwhile would make it look like a change.
func (r *run) patchSeen(ctx context.Context, at metadata.ResourceInterface, o order, d *deed) (*metav1.PartialObjectMetadata, error) {
	for try := 0; try < seenTries && d.base != nil; try++ {
		got, err := r.patch(ctx, at, o, d.base.ResourceVersion, false)
		if c := Classify(err); c != ClassStale && c != ClassNotFound {
			return got, err
		}
		now, err := r.getMeta(ctx, at, o.ref)
		if err != nil {
			return nil, err
		}
		if now != nil && (now.UID != d.base.UID || entryOf(now, r.opts.FieldManager) != entryOf(d.base, r.opts.FieldManager)) {
			now = nil // another object, or our own write whose answer was lost
		}
		d.base = now
	}
	d.base = nil
	return r.patch(ctx, at, o, "", false)
}

// patch is one server-side apply. version, when given, must still be the object's.
func (r *run) patch(ctx context.Context, at metadata.ResourceInterface, o order, version string, force bool) (*metav1.PartialObjectMetadata, error) {
	raw, err := o.encode(version)
	if err != nil {
		return nil, err
	}
	return at.Patch(context.WithValue(ctx, refKey{}, o.ref), o.ref.Name, types.ApplyPatchType, raw, r.patchOptions(force))
}

func (r *run) patchOptions(force bool) metav1.PatchOptions {
	options := metav1.PatchOptions{FieldManager: r.opts.FieldManager, FieldValidation: metav1.FieldValidationStrict}
	if force {
		options.Force = &force
	}
	return options
}

// noMatch makes the retrier wait for a kind that comes with this set, and give up soon on any other.
func (r *run) noMatch(ref Ref, err error) error {
	if r.kinds[ref.Group+"/"+ref.Kind] || time.Since(r.started[tierOf(ref)]) < strangerKindWait {
		return err
	}
	return final{&ObjectError{Ref: ref, Class: ClassNoMatch, Err: err}}
}

// strangerKindWait is how long a kind that this set does not bring may take to appear.
const strangerKindWait = 5 * time.Second

// waitOut waits until an object that is being deleted is gone.
func (r *run) waitOut(ctx context.Context, ref Ref, now *metav1.PartialObjectMetadata) error {
	if ref.Group == "" && ref.Kind == "Namespace" {
		return &ObjectError{Ref: ref, Class: ClassNamespaceTerminating, Err: r.terminating(ctx, ref.Name)}
	}
	if r.opts.DryRun {
		return nil
	}
	reason := "it is being deleted"
	if len(now.Finalizers) > 0 {
		reason += ", held by " + strings.Join(now.Finalizers, ", ")
	}
	r.events.emit(Waiting{Ref: ref, Reason: reason, Since: now.DeletionTimestamp.Time})
	at, err := r.cluster.at(ctx, ref)
	if err != nil {
		return err
	}
	return waitGone(ctx, at, ref, now.UID, r.opts.Retry.Limit)
}

// explain adds to a refusal what only another read can tell.
func (r *run) explain(ctx context.Context, ref Ref, err error) error {
	if Classify(err) == ClassNamespaceTerminating && ref.Namespace != "" {
		return &ObjectError{Ref: ref, Class: ClassNamespaceTerminating, Err: errors.Join(r.terminating(ctx, ref.Namespace), err)}
	}
	return err
}

// terminating reads what holds a namespace; best effort, because it only adds words to an error.
func (r *run) terminating(ctx context.Context, name string) error {
	e := &TerminatingError{Namespace: name}
	ns, err := r.cluster.typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return e
	}
	for _, c := range ns.Status.Conditions {
		if c.Status == "True" && c.Message != "" {
			e.Blocked = append(e.Blocked, c.Message)
		}
	}
	for _, f := range ns.Finalizers {
		e.Blocked = append(e.Blocked, fmt.Sprintf("finalizer %s", f))
	}
	return e
}
