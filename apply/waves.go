package apply

import (
	"context"
	"errors"
	"slices"
	"time"
)

// writeWaves writes all waves but those of a failure. A wave that others follow is waited for, unless nothing is left to write after it:
// then a converge of an unchanged set costs no look at the state of its objects.
func (r *run) writeWaves(ctx context.Context) error {
	for n, w := range r.waves {
		if w.phase == SyncFail {
			break
		}
		r.tellWave(w)
		started, err := r.writeWave(ctx, w)
		if err != nil {
			return err // hooks that were started go on; the next run joins them
		}
		if err := r.settleWave(ctx, w, started, r.opts.Wait || r.followed(n)); err != nil {
			return err
		}
	}
	return nil
}

// tellWave says that a wave begins, where waves mean something.
func (r *run) tellWave(w wave) {
	if len(r.waves) > 1 && !r.opts.DryRun {
		r.events.emit(WaveStarted{Phase: w.phase, Wave: w.number, Objects: len(w.indexes())})
	}
}

func (w wave) indexes() []int { return slices.Concat(w.tiers[:]...) }

// followed says that a wave after that one has something to write.
func (r *run) followed(n int) bool {
	for _, w := range r.waves[n+1:] {
		if w.phase == SyncFail {
			continue
		}
		for _, i := range w.indexes() {
			o := r.orders[i]
			if o.pos.isHook() && r.hookDue(hookRun{o.ref, w.phase}) || !o.pos.isHook() && !r.isCurrent(o) {
				return true
			}
		}
	}
	return false
}

// isCurrent says that the look showed an object to be as asked, so that nothing is to be written.
func (r *run) isCurrent(o order) bool {
	now, rec := r.live.get(o.ref), r.inv.records[o.ref.key()]
	if now == nil || now.DeletionTimestamp != nil {
		return o.spent(now, rec)
	}
	return o.asAsked(now, rec, r.opts.FieldManager)
}

// A startedHook is a hook that runs.
type startedHook struct {
	index int
	hookRun
}

// writeWave writes the objects of a wave and starts its hooks, tier by tier.
func (r *run) writeWave(ctx context.Context, w wave) (started []startedHook, err error) {
	for tier, indexes := range w.tiers {
		r.started[tier] = time.Now()
		r.awaitDefaults(ctx, indexes)
		due := make([]bool, len(indexes))
		err := r.each(len(indexes), func(n int) (err error) {
			i := indexes[n]
			if !r.orders[i].pos.isHook() {
				return r.applyIndex(ctx, i)
			}
			due[n], err = r.startHook(ctx, i, hookRun{r.orders[i].ref, w.phase})
			return err
		})
		for n, i := range indexes {
			if due[n] {
				started = append(started, startedHook{i, hookRun{r.orders[i].ref, w.phase}})
			}
		}
		if err != nil {
			return started, err
		}
		if tier == tierKinds && len(indexes) > 0 {
			if err := r.settleKinds(ctx, r.outcome().Objects); err != nil {
				return started, err
			}
		}
	}
	return started, nil
}

// settleWave waits for the hooks of a wave, and for its objects when they must be ready. It is one wait: a moment after one failed, nothing
// is gained by waiting for the others, which may wait for a node for ever. Hooks that run then go on; the next run joins them.
func (r *run) settleWave(ctx context.Context, w wave, started []startedHook, ready bool) error {
	if err := r.settleTokens(ctx, w, started, ready); err != nil {
		return err
	}
	refs := r.waitedFor(w, ready)
	hooks := map[Ref]startedHook{}
	ends := make(chan startedHook, len(started))
	var failed []startedHook
	how := care{limits: map[Ref]time.Duration{}}
	for _, h := range started {
		refs = append(refs, h.ref)
		hooks[h.ref.key()] = h
		if limit, ok := dig(r.orders[h.index].body.Object, "spec", "activeDeadlineSeconds").(int64); ok {
			how.limits[h.ref.key()] = time.Duration(limit)*time.Second + hookMargin
		}
	}
	how.ready = func(ref Ref) {
		if h, ok := hooks[ref.key()]; ok {
			ends <- h
		}
	}
	how.tell = func(e *UnreadyError) error {
		h, ok := hooks[e.Ref.key()]
		if !ok {
			return e
		}
		if !e.Pending {
			failed = append(failed, h)
		}
		return &HookError{Ref: h.ref, Phase: h.phase, Err: e}
	}
	noted := make(chan error, 1)
	go func() { noted <- r.noteEnds(ctx, ends) }()
	err := r.cluster.waitWith(ctx, refs, r.waitOptions(), how)
	close(ends)
	return errors.Join(err, <-noted, r.dropFailed(ctx, failed))
}

// settleTokens waits for the token Secrets of a wave, as settleWave for all others. A hook that is one has not succeeded before.
func (r *run) settleTokens(ctx context.Context, w wave, started []startedHook, ready bool) error {
	var ordinary []int
	for _, i := range w.indexes() {
		if ready && !r.orders[i].pos.isHook() {
			ordinary = append(ordinary, i)
		}
	}
	err := r.awaitTokens(ctx, ordinary)
	for _, h := range started {
		if hookErr := r.awaitTokens(ctx, []int{h.index}); hookErr != nil {
			err = errors.Join(err, &HookError{Ref: h.ref, Phase: h.phase, Err: hookErr})
		}
	}
	return err
}

// hookMargin is what a Job controller may take to say that a Job's own deadline is over.
const hookMargin = 30 * time.Second

// waitedFor lists the ordinary objects of a wave that must be ready.
func (r *run) waitedFor(w wave, ready bool) []Ref {
	var refs []Ref
	for _, i := range w.indexes() {
		// A Job whose time was over is not there, and nothing comes of waiting for it.
		if ready && !r.opts.DryRun && !r.orders[i].pos.isHook() && r.results[i].Why != whySpent {
			refs = append(refs, r.orders[i].ref)
		}
	}
	return refs
}

func (r *run) waitOptions() WaitOptions {
	opts := r.opts.Ready
	if opts.Events == nil {
		opts.Events = r.events.emit
	}
	return opts
}

// runFailHooks runs the hooks of SyncFail, wave by wave.
func (r *run) runFailHooks(ctx context.Context) error {
	var ended []int
	for _, w := range r.waves {
		if w.phase != SyncFail {
			continue
		}
		r.tellWave(w)
		started, err := r.writeWave(ctx, w)
		if err == nil {
			err = r.settleWave(ctx, w, started, false)
		}
		if err != nil {
			return err
		}
		ended = append(ended, w.indexes()...)
	}
	return r.dropSucceeded(ctx, ended)
}
