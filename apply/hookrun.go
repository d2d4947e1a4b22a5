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

	"jr2.dev/jr2/internal/clip"
)

// hookDue says that a hook is to run: it did not succeed yet for what is asked now.
func (r *run) hookDue(h hookRun) bool { return h.phase == SyncFail || !r.inv.release.done(h) }

// startHook makes a hook, or joins the one that a cut-off run of the same release left. due is false when it needs no run any more.
func (r *run) startHook(ctx context.Context, i int, h hookRun) (due bool, err error) {
	o := r.orders[i]
	if !r.hookDue(h) {
		r.settleResult(i, ObjectResult{Ref: h.ref, Action: Unchanged, Why: "it ran for this content of the set"})
		return false, nil
	}
	if r.opts.DryRun {
		return false, r.rehearseHook(ctx, i, h)
	}
	body := o.hookBody(h, r.inv.release)
	joined := false
	err = r.retry.do(ctx, h.ref, func(ctx context.Context) error {
		at, err := r.cluster.full(ctx, h.ref)
		if err != nil {
			return r.unmapped(h.ref, err)
		}
		if joined, err = r.makeRoom(ctx, at, o, h, body); err != nil || joined {
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
	annotate(body, releaseAnnotation, rel.mark(h))
	if o.ref.Group == "batch" && o.ref.Kind == "Job" {
		unstructured.RemoveNestedField(body.Object, "spec", "ttlSecondsAfterFinished")
	}
	return body
}

// makeRoom sees to it that nothing has the hook's name, or that what has it is this very run of the hook, which is joined. Whatever else
// the set left there is deleted with its pods and waited for, so that a hook never runs twice at once. What is being deleted is waited for,
// whoever's it was. A hook of a failure that ended was that of an earlier failure.
func (r *run) makeRoom(ctx context.Context, at dynamic.ResourceInterface, o order, h hookRun, body *unstructured.Unstructured) (joined bool, err error) {
	now, err := at.Get(ctx, o.ref.Name, metav1.GetOptions{})
	if Classify(err) == ClassNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mark := now.GetAnnotations()
	switch {
	case now.GetDeletionTimestamp() != nil:
	case !r.marked(now):
		return false, final{r.foreignHook(o.ref, now)}
	case r.tooDearForAHook(o.ref, now) != nil:
		return false, final{r.tooDearForAHook(o.ref, now)}
	case mark[releaseAnnotation] == body.GetAnnotations()[releaseAnnotation]:
		if s, _ := r.opts.Ready.status(now); !s.Failed && (!s.Done || h.phase != SyncFail) {
			r.noteHook(o, now)
			return true, nil
		}
	}
	return false, r.deleteHook(ctx, at, o.ref, now, true)
}

// foreignHook is why a hook can't be made while an object of somebody else has its name: it would have to be deleted.
func (r *run) foreignHook(ref Ref, now metav1.Object) error {
	if owner := now.GetAnnotations()[SetAnnotation]; owner != "" && owner != r.set.ID() {
		return &OwnedError{Ref: ref, Owner: clip.Text(owner), Set: r.set.ID()}
	}
	return &ObjectError{Ref: ref, Class: ClassAlreadyExists, Err: errForeignHook}
}

var errForeignHook = errors.New("a hook is made anew for each release, and what has its name is not of this set; give the hook another name, or delete what has it")

// tooDearForAHook is why an object of the set that was no hook is not deleted to make room for one: it holds data, or says to keep it. What was made
// as a hook is made anew whatever it says.
func (r *run) tooDearForAHook(ref Ref, now metav1.Object) error {
	mark := keepMarkOf(now, false)
	switch {
	case r.madeAsHook(now) || mark == "" && !holdsData(ref):
		return nil
	case mark != "":
		return &ObjectError{Ref: ref, Class: ClassAlreadyExists, Err: fmt.Errorf("%w: %s", errDearToHook, whyKept(mark))}
	}
	return &ObjectError{Ref: ref, Class: ClassAlreadyExists, Err: fmt.Errorf("%w: it holds data", errDearToHook)}
}

var errDearToHook = errors.New("it was no hook before, and a hook is deleted to be made anew; give the hook another name, or delete what has it")

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
	watched, err := r.cluster.at(ctx, ref)
	if err != nil {
		return err
	}
	r.events.emit(Waiting{Ref: ref, Reason: "what has the name of this hook is being deleted", Since: time.Now()})
	if err := waitGone(ctx, watched, ref, uid, r.opts.Retry.Limit); err != nil {
		return final{err}
	}
	return nil
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

// noteEnds notes hooks that succeeded, in the inventory too, until the channel is closed. Those that end at once are written at once.
func (r *run) noteEnds(ctx context.Context, ends <-chan startedHook) (err error) {
	for h := range ends {
		r.noteEnd(h)
		for more := true; more; {
			select {
			case h, more = <-ends:
				if more {
					r.noteEnd(h)
				}
			default:
				more = false
			}
		}
		if err == nil {
			err = r.keep(ctx)
		}
	}
	return err
}

func (r *run) noteEnd(h startedHook) {
	r.settleResult(h.index, ObjectResult{Ref: h.ref, Action: Ran})
	if h.phase == SyncFail {
		return
	}
	r.keeping.Lock()
	defer r.keeping.Unlock()
	r.inv.release.finish(h.hookRun)
}

// dropFailed deletes the hooks that failed and are to go then.
func (r *run) dropFailed(ctx context.Context, failed []startedHook) error {
	if ctx.Err() != nil {
		return nil
	}
	return r.each(len(failed), func(n int) error {
		if !r.orders[failed[n].index].pos.whenFailed {
			return nil
		}
		return r.dropHook(ctx, failed[n].ref)
	})
}

// dropSucceeded deletes the hooks that are to go when they succeeded, also those of a run that was cut off before it could. That is when
// all have succeeded, as in Argo CD: a hook may be what a later one needs, its account or its configuration.
func (r *run) dropSucceeded(ctx context.Context, indexes []int) error {
	if r.opts.DryRun {
		return nil
	}
	return r.each(len(indexes), func(n int) error {
		o := r.orders[indexes[n]]
		if !o.pos.whenSucceeded || r.live.get(o.ref) == nil && r.results[indexes[n]].Action != Ran {
			return nil
		}
		return r.dropHook(ctx, o.ref)
	})
}

// hooksOfWaves lists the hooks of the waves of a run without a failure.
func (r *run) hooksOfWaves() []int {
	var all []int
	for i, o := range r.orders {
		if o.pos.isHook() && o.pos.phases[0] != SyncFail {
			all = append(all, i)
		}
	}
	return all
}

// rehearseHook keeps what a plan says about a hook; once, however many phases it has.
func (r *run) rehearseHook(ctx context.Context, i int, h hookRun) error {
	if r.results[i].Action == Ran {
		return nil
	}
	result, err := r.rehearse(ctx, r.orders[i])
	if err != nil {
		return &HookError{Ref: h.ref, Phase: h.phase, Err: err}
	}
	r.settleResult(i, result)
	return nil
}

// dropHook deletes a hook that ended, and nothing else that has got its name.
func (r *run) dropHook(ctx context.Context, ref Ref) error {
	return r.retry.do(ctx, ref, func(ctx context.Context) error {
		at, err := r.cluster.full(ctx, ref)
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
		if !r.madeAsHook(now) {
			return nil
		}
		return r.deleteHook(ctx, at, ref, now, false)
	})
}

// madeAsHook says that a live object was made as a hook of this set.
func (r *run) madeAsHook(now metav1.Object) bool {
	mark := now.GetAnnotations()
	return r.marked(now) && mark[releaseAnnotation] != ""
}

// settleResult keeps what happened to an object. A hook that ran in one of its phases ran; one that runs in none is told once.
func (r *run) settleResult(i int, result ObjectResult) {
	r.mu.Lock()
	last := r.results[i].Action
	if last != Ran {
		r.results[i] = result
	}
	r.mu.Unlock()
	if last == "" || result.Action == Ran {
		r.events.emit(Applied{Ref: result.Ref, Action: result.Action})
	}
}
