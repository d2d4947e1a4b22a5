package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// hookDue says that a hook is to run: it did not succeed yet for what is asked now.
func (r *run) hookDue(h hookRun) bool { return h.phase == SyncFail || !r.inv.release.done(h) }

// startHook makes a hook, or joins the one that a cut-off run of the same release left. due is false when it needs no run any more.
func (r *run) startHook(ctx context.Context, i int, h hookRun) (due bool, err error) {
	o := r.orders[i]
	if !r.hookDue(h) {
		if o.pos.whenSucceeded && r.live.get(h.ref) != nil && !r.opts.DryRun { // the run in which it succeeded was cut off
			if err := r.dropHook(ctx, h.ref); err != nil {
				return false, err
			}
		}
		r.settleResult(i, ObjectResult{Ref: h.ref, Action: Unchanged, Why: "it ran for this content of the set"})
		return false, nil
	}
	if r.opts.DryRun {
		r.settleResult(i, ObjectResult{Ref: h.ref, Action: Ran})
		return false, nil
	}
	body := o.hookBody(h, r.inv.release)
	joined := false
	err = r.retry.do(ctx, h.ref, func(ctx context.Context) error {
		at, err := r.cluster.full(h.ref)
		if err != nil {
			return r.unmapped(h.ref, err)
		}
		if joined, err = r.makeRoom(ctx, at, o, body); err != nil || joined {
			return err
		}
		made, err := at.Create(ctx, body, metav1.CreateOptions{FieldManager: r.opts.FieldManager, FieldValidation: metav1.FieldValidationStrict})
		if Classify(err) == ClassAlreadyExists {
			// Our own request, whose answer was lost, or somebody else's: the next look tells.
			return &ObjectError{Ref: h.ref, Class: ClassBeingDeleted, Err: err}
		}
		if err == nil {
			r.noteHook(o, made)
		}
		return err
	})
	if err != nil {
		return false, &HookError{Ref: h.ref, Phase: h.phase, Err: discreet(o, r.explain(ctx, h.ref, err))}
	}
	r.events.emit(HookStarted{Ref: h.ref, Phase: h.phase, Joined: joined})
	return true, nil
}

// hookBody is the hook as it is made. A time to live would take a Job away before anybody saw how it ended; its delete policy decides.
func (o order) hookBody(h hookRun, rel *release) *unstructured.Unstructured {
	body := o.body.DeepCopy()
	number := 0
	if rel != nil {
		number = rel.Number
	}
	annotate(body, releaseAnnotation, fmt.Sprintf("%d %s", number, h.phase))
	if o.ref.Group == "batch" && o.ref.Kind == "Job" {
		unstructured.RemoveNestedField(body.Object, "spec", "ttlSecondsAfterFinished")
	}
	return body
}

// makeRoom sees to it that nothing has the hook's name, or that what has it is this very run of the hook, which is joined. Whatever else
// the set left there is deleted with its pods and waited for, so that a hook never runs twice at once.
func (r *run) makeRoom(ctx context.Context, at dynamic.ResourceInterface, o order, body *unstructured.Unstructured) (joined bool, err error) {
	now, err := at.Get(ctx, o.ref.Name, metav1.GetOptions{})
	if Classify(err) == ClassNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mark := now.GetAnnotations()
	switch {
	case mark[SetAnnotation] != r.set.ID() && !r.opts.Adopt && !r.opts.Shared:
		if mark[SetAnnotation] != "" {
			return false, final{&OwnedError{Ref: o.ref, Owner: mark[SetAnnotation], Set: r.set.ID()}}
		}
		return false, final{&ObjectError{Ref: o.ref, Class: ClassAlreadyExists, Err: errForeignHook}}
	case now.GetDeletionTimestamp() != nil:
	case mark[releaseAnnotation] == body.GetAnnotations()[releaseAnnotation] && !r.statusOf(now).Failed:
		r.noteHook(o, now)
		return true, nil
	}
	return false, r.deleteHook(ctx, at, o.ref, now, true)
}

var errForeignHook = errors.New("a hook is made anew for each release, and what has its name is of no set; delete it, or adopt it")

// deleteHook deletes exactly that object: a workload in the foreground, so that it is gone when its pods are.
func (r *run) deleteHook(ctx context.Context, at dynamic.ResourceInterface, ref Ref, now *unstructured.Unstructured, wait bool) error {
	uid, propagation := now.GetUID(), metav1.DeletePropagationBackground
	if tierOf(ref) == tierWorkloads {
		propagation = metav1.DeletePropagationForeground
	}
	if now.GetDeletionTimestamp() == nil {
		err := at.Delete(ctx, ref.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &propagation})
		if c := Classify(err); err != nil && c != ClassNotFound && c != ClassStale {
			return err
		}
	}
	if !wait {
		return nil
	}
	watched, err := r.cluster.at(ref)
	if err != nil {
		return err
	}
	r.events.emit(Waiting{Ref: ref, Reason: "the last run of this hook is being deleted", Since: time.Now()})
	if err := waitGone(ctx, watched, ref, uid, r.opts.Retry.Limit); err != nil {
		return final{err}
	}
	return nil
}

// statusOf reads an object as the waits do.
func (r *run) statusOf(o *unstructured.Unstructured) Status {
	for _, read := range r.opts.Ready.Readers {
		if s, ok := read(o); ok {
			return s
		}
	}
	return Ready(o)
}

// unmapped makes the retrier look again for a kind that arrives.
func (r *run) unmapped(ref Ref, err error) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	r.cluster.mapper.reset()
	return r.noMatch(ref, err)
}

// noteHook keeps the hook that was made in the inventory.
func (r *run) noteHook(o order, made *unstructured.Unstructured) {
	rec := record{Ref: o.ref, UID: made.GetUID()}
	if !o.isSecret() {
		rec.Want = o.want
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[rec.key()] = rec
}

// finishHook waits for the end of a hook, notes that it succeeded, and only then lets go of it.
func (r *run) finishHook(ctx context.Context, i int, h hookRun) error {
	o := r.orders[i]
	opts := r.waitOptions()
	if limit, ok := dig(o.body.Object, "spec", "activeDeadlineSeconds").(int64); ok {
		opts.Timeout = max(opts.Timeout, time.Duration(limit)*time.Second+hookMargin)
	}
	if err := r.cluster.waitReady(ctx, []Ref{h.ref}, opts); err != nil {
		err = &HookError{Ref: h.ref, Phase: h.phase, Err: err}
		if o.pos.whenFailed && ctx.Err() == nil {
			err = errors.Join(err, r.dropHook(ctx, h.ref))
		}
		return err
	}
	r.settleResult(i, ObjectResult{Ref: h.ref, Action: Ran})
	r.keeping.Lock()
	if r.inv.release != nil && h.phase != SyncFail {
		r.inv.release.finish(h)
	}
	r.keeping.Unlock()
	if err := r.keep(ctx); err != nil {
		return err
	}
	if o.pos.whenSucceeded {
		return r.dropHook(ctx, h.ref)
	}
	return nil
}

// hookMargin is what a Job controller may take to say that a Job's own deadline is over.
const hookMargin = 30 * time.Second

// dropHook deletes a hook that ended.
func (r *run) dropHook(ctx context.Context, ref Ref) error {
	return r.retry.do(ctx, ref, func(ctx context.Context) error {
		at, err := r.cluster.full(ref)
		if err != nil {
			return err
		}
		now, err := at.Get(ctx, ref.Name, metav1.GetOptions{})
		if Classify(err) == ClassNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		return r.deleteHook(ctx, at, ref, now, false)
	})
}

// settleResult keeps what happened to an object; a hook that ran in one of its phases ran.
func (r *run) settleResult(i int, result ObjectResult) {
	r.mu.Lock()
	if r.results[i].Action != Ran {
		r.results[i] = result
	}
	r.mu.Unlock()
	r.events.emit(Applied{Ref: result.Ref, Action: result.Action})
}
