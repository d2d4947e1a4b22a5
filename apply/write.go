package apply

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// writeObject makes one object as asked, and returns what it did and what the inventory is to keep.
func (r *run) writeObject(ctx context.Context, o order) (ObjectResult, record, error) {
	rec := r.inv.records[o.ref.key()]
	now := r.live.get(o.ref)
	if now != nil && o.asAsked(now, rec, r.opts.FieldManager) {
		rec.Ref = o.ref
		return ObjectResult{Ref: o.ref, UID: string(now.UID), Action: Unchanged}, rec, nil
	}
	if now != nil && now.DeletionTimestamp != nil {
		if err := r.waitOut(ctx, o.ref, now); err != nil {
			return ObjectResult{}, record{}, err
		}
		now = nil
	}
	var got *metav1.PartialObjectMetadata
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		got, err = r.tryWrite(ctx, o)
		return err
	})
	if errors.Is(err, errArrivesLater) {
		return ObjectResult{Ref: o.ref, Action: Created, Why: err.Error()}, record{}, nil
	}
	if err != nil {
		return ObjectResult{}, record{}, discreet(o, r.explain(ctx, o.ref, err))
	}
	result := ObjectResult{Ref: o.ref, UID: string(got.UID), Action: r.actionOf(o, now, got, rec)}
	if r.opts.DryRun {
		if result.Action, err = r.dryRunAction(ctx, o, now, got, rec); err != nil {
			return ObjectResult{}, record{}, err
		}
	}
	next := record{Ref: o.ref, UID: got.UID, Entry: entryOf(got, r.opts.FieldManager)}
	if !o.isSecret() {
		next.Want = o.want
	}
	return result, next, nil
}

// actionOf compares an object before and after the write. A write that changes nothing leaves the resourceVersion alone; when a
// controller wrote meanwhile, our own entry of the managed fields tells. It alone would not do: its time has steps of a second, so a
// new value right after the last one leaves the same entry, and only a different want shows it.
func (r *run) actionOf(o order, before, after *metav1.PartialObjectMetadata, rec record) Action {
	switch {
	case before == nil || before.UID != after.UID:
		return Created
	case before.ResourceVersion == after.ResourceVersion:
		return Unchanged
	case o.wantedBefore(before, rec) && entryOf(before, r.opts.FieldManager) == entryOf(after, r.opts.FieldManager):
		return Unchanged
	}
	return Configured
}

// errArrivesLater stands for an object that a dry run can't show to the server.
var errArrivesLater = errors.New("its kind or its namespace arrives with this set")

// tryWrite sends one object once. An object that turns out to be on its way out is waited for and written again: a server-side apply
// onto it succeeds, and then it vanishes.
func (r *run) tryWrite(ctx context.Context, o order) (*metav1.PartialObjectMetadata, error) {
	at, err := r.cluster.at(o.ref)
	if meta.IsNoMatchError(err) {
		if r.opts.DryRun && r.arrives(o.ref) {
			return nil, errArrivesLater
		}
		r.cluster.mapper.reset()
		return nil, r.noMatch(o.ref, err)
	}
	if err != nil {
		return nil, err
	}
	var got *metav1.PartialObjectMetadata
	if s, ok := r.planned(o.ref); ok {
		got, err = r.patchPlanned(ctx, at, o, s)
	} else if got, err = r.patch(ctx, at, o, "", false); Classify(err) == ClassConflict {
		got, err = r.takeOver(ctx, at, o)
	}
	if r.opts.DryRun && apierrors.IsNotFound(err) && r.arrives(o.ref) {
		return nil, errArrivesLater
	}
	if Classify(err) == ClassNoMatch { // what the mapper knows is out of date
		r.cluster.mapper.reset()
		return nil, r.noMatch(o.ref, err)
	}
	if err != nil {
		return nil, err
	}
	if got.DeletionTimestamp != nil && !r.opts.DryRun {
		if err := r.waitOut(ctx, o.ref, got); err != nil {
			return nil, final{err}
		}
		return nil, &ObjectError{Ref: o.ref, Class: ClassBeingDeleted, Err: errors.New("it was being deleted while it was written")}
	}
	return got, nil
}

// patch is one server-side apply. version, when given, must still be the object's.
func (r *run) patch(ctx context.Context, at metadata.ResourceInterface, o order, version string, force bool) (*metav1.PartialObjectMetadata, error) {
	raw, err := o.encode(version)
	if err != nil {
		return nil, err
	}
	options := r.patchOptions(force)
	if r.opts.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return at.Patch(context.WithValue(ctx, refKey{}, o.ref), o.ref.Name, types.ApplyPatchType, raw, options)
}

func (r *run) patchOptions(force bool) metav1.PatchOptions {
	options := metav1.PatchOptions{FieldManager: r.opts.FieldManager, FieldValidation: metav1.FieldValidationStrict}
	if force {
		options.Force = &force
	}
	return options
}

// takeOver decides about a conflict. Fields are taken by force only when every manager in the way may be taken from, and only from
// the version of the object for which that was found.
func (r *run) takeOver(ctx context.Context, at metadata.ResourceInterface, o order) (*metav1.PartialObjectMetadata, error) {
	now, err := at.Get(ctx, o.ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	got, err := r.patch(ctx, at, o, now.ResourceVersion, false)
	if Classify(err) != ClassConflict {
		return got, err
	}
	conflicts := conflictsOf(err)
	if !r.mayTake(conflicts) {
		return nil, &ConflictError{Ref: o.ref, Conflicts: conflicts, Err: err}
	}
	return r.patch(ctx, at, o, now.ResourceVersion, true)
}

// mayTake says that every manager in the way may be taken from. When the server named nobody, nobody allowed it.
func (r *run) mayTake(conflicts []Conflict) bool {
	for _, c := range conflicts {
		manager, _, _ := strings.Cut(c.Manager, " (")
		if !slices.Contains(r.opts.Conflicts.TakeFrom, manager) {
			return false
		}
	}
	return len(conflicts) > 0
}

var conflictWith = regexp.MustCompile(`^conflict with "(.*?)"(?: with subresource "(.*?)")?`)

func conflictsOf(err error) []Conflict {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var all []Conflict
	for _, c := range status.Status().Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := c.Message
		if m := conflictWith.FindStringSubmatch(c.Message); m != nil {
			manager = m[1]
			if m[2] != "" {
				manager += " (" + m[2] + ")"
			}
		}
		all = append(all, Conflict{Manager: manager, Field: c.Field})
	}
	return all
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
	at, err := r.cluster.at(ref)
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
