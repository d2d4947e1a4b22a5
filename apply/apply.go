package apply

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// Apply brings the set into the cluster: it looks at what is there, writes what differs, in order, and prunes last. It copies cfg
// and switches the client-side rate limiter off. A second Apply of an equal set writes nothing and reports no change.
//
// Objects whose annotations give them waves or make them hooks (WaveAnnotation, HookAnnotation) are written in that order: a wave starts
// when what the one before wrote is ready and its hooks succeeded. Without such annotations nothing is waited for, unless Options.Wait asks.
//
// Nothing is written when an object of the set is somebody else's (*OwnedError, *UnownedError), when the adoption of a Secret would replace a value
// (*ConflictError), when the record is somebody else's or can't be read (*InventoryError), or when a prune looks like an accident (*AccidentError).
//
// The Outcome is never nil. Other errors are *ConflictError, *ImmutableError, *MintError, *EmptyKeyError, *ObjectError, *HookError, *RemovalError,
// *TakenAwayError, those of WaitReady, or several of them joined: objects that can be applied in the same wave are, and no later wave starts. Then the
// hooks of SyncFail run.
func Apply(ctx context.Context, cfg *rest.Config, set *Set, opts Options) (*Outcome, error) {
	r, err := newRun(cfg, set, opts)
	if err != nil {
		return &Outcome{}, err
	}
	if err = r.look(ctx); err == nil {
		err = r.write(ctx)
	}
	return r.outcome(), err
}

// A run is one Apply.
type run struct {
	set     *Set
	opts    Options
	cluster *cluster
	events  *emitter
	retry   retrier

	orders []order         // as set.Objects
	asked  []string        // the wants of the orders as the set has them, before anything was left to others
	waves  []wave          // in the order in which they come
	wanted map[Ref]bool    // the keys of the set
	kinds  map[string]bool // that the set brings
	inv    *inventory
	live   *live
	scopes scopes

	keeping sync.Mutex // the inventory is written by one at a time

	mu      sync.Mutex
	results []ObjectResult // as set.Objects; an empty action is an object that was not reached
	pruned  []ObjectResult
	records map[Ref]record
	started [tierCount]time.Time
	steps   map[Ref]Step // of the plan that is carried out; nil when there is none
}

func newRun(cfg *rest.Config, set *Set, opts Options) (*run, error) {
	opts = opts.withDefaults()
	r := &run{opts: opts, events: &emitter{fn: opts.Events}, live: newLive()}
	r.retry = retrier{limits: opts.Retry, events: r.events}
	if err := r.take(set); err != nil {
		return nil, err
	}
	if opts.Shared {
		if err := noHooks(r.orders); err != nil {
			return nil, err
		}
	}
	var err error
	r.cluster, err = connect(cfg, r.events)
	return r, err
}

// take makes the set the one that is applied, and schedules it.
func (r *run) take(set *Set) error {
	r.set, r.kinds = set, kindsOf(set.Objects)
	r.results = make([]ObjectResult, len(set.Objects))
	r.orders = make([]order, len(set.Objects))
	err := onAllProcessors(len(set.Objects), func(i int) (err error) {
		r.orders[i], err = newOrder(set.Objects[i], set, r.opts.Shared)
		return err
	})
	if err != nil {
		return err
	}
	r.asked, r.wanted = nil, map[Ref]bool{}
	for _, o := range r.orders {
		r.asked = append(r.asked, o.want)
		r.wanted[o.ref.key()] = true
	}
	r.waves = schedule(r.orders)
	return nil
}

// look reads what the run has to know, and writes nothing.
func (r *run) look(ctx context.Context) error {
	if err := r.readCluster(ctx); err != nil {
		return err
	}
	if err := r.settleHomes(ctx); err != nil {
		return err
	}
	if err := r.leaveReplicas(ctx); err != nil {
		return err
	}
	if err := r.noteReading(); err != nil {
		return err
	}
	return r.openRelease()
}

// write does what is to be done.
func (r *run) write(ctx context.Context) error {
	if err := r.checkOwners(ctx); err != nil {
		return err
	}
	if err := r.agreeToPrune(ctx); err != nil {
		return err
	}
	if err := r.announce(ctx); err != nil {
		return err
	}
	if err := r.writeWaves(ctx); err != nil {
		// What was done is worth keeping, and the next run completes it without this too.
		// Another run that wrote the inventory goes on with the same set: whether that fails is its to say.
		if ctx.Err() == nil && !r.opts.DryRun && !errors.Is(err, ErrInventoryMoved) {
			err = errors.Join(err, r.runFailHooks(ctx), r.keep(ctx))
		}
		return err
	}
	err := r.dropSucceeded(ctx, r.hooksOfWaves())
	if r.opts.Prune && !r.opts.Shared {
		var pruneErr error
		r.pruned, pruneErr = r.prune(ctx, r.records)
		err = errors.Join(err, pruneErr)
	}
	if r.opts.DryRun {
		return err
	}
	return r.lastLook(ctx, errors.Join(err, r.keep(ctx)))
}

func (r *run) loadInventory(ctx context.Context) error {
	if r.opts.Shared {
		r.inv = &inventory{set: r.set, records: map[Ref]record{}}
		return nil
	}
	return r.retry.do(ctx, (&inventory{set: r.set}).ref(), func(ctx context.Context) (err error) {
		r.inv, err = loadInventory(ctx, r.cluster.typed, r.set)
		return err
	})
}

// readCluster reads the inventory and, meanwhile, the objects of the set; then those that only the inventory names.
func (r *run) readCluster(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return r.loadInventory(ctx) })
	lookErr := r.lookAtSet(ctx)
	if err := g.Wait(); err != nil {
		return err // most likely the reason of the other too
	}
	if lookErr != nil {
		return lookErr
	}
	if err := r.identifyRecords(ctx); err != nil || !r.opts.Prune {
		return err
	}
	var former []Ref
	for k, rec := range r.inv.records {
		if !r.wanted[k] && r.live.hidden(rec.Ref) == nil {
			former = append(former, rec.Ref)
		}
	}
	return r.lookAt(ctx, former)
}

// lookAtSet looks at the objects of the set, once it is known what each of them is.
func (r *run) lookAtSet(ctx context.Context) error {
	if err := r.identify(ctx); err != nil {
		return err
	}
	wanted := make([]Ref, len(r.orders))
	for i, o := range r.orders {
		wanted[i] = o.ref
	}
	return r.lookAt(ctx, wanted)
}

// checkOwners refuses the whole set, before the first write, when one of its objects is somebody else's.
func (r *run) checkOwners(ctx context.Context) error {
	return r.each(len(r.orders), func(i int) error {
		o := r.orders[i]
		now := r.live.get(o.ref)
		if now == nil || o.joined || o.pos.isHook() && now.Annotations[SetAnnotation] == "" { // of a hook it shows when it is to run
			return nil
		}
		if err := r.claim(o.ref, now); err != nil {
			return err
		}
		return r.keepsValues(ctx, o, now)
	})
}

// announce writes the inventory before the objects: all that may exist from now on. When the set brings its own namespace, that is
// written first, because nothing can be noted before.
func (r *run) announce(ctx context.Context) error {
	r.records = maps.Clone(r.inv.records)
	for i, o := range r.orders {
		if o.ref.Group == "" && o.ref.Kind == "Namespace" && o.ref.Name == r.set.Namespace {
			if err := r.applyIndex(ctx, i); err != nil {
				return err
			}
		}
	}
	more := !r.inv.holdsRelease()
	for _, o := range r.orders {
		if _, ok := r.records[o.ref.key()]; !ok && !o.joined {
			rec := record{Ref: o.ref, Keep: keepMarkOf(o.body, false)}
			if o.mints() {
				rec = unreadRecord(rec, o) // a run that is cut off leaves it known for a minted Secret, which stays though nobody may read it
			}
			r.records[o.ref.key()] = rec
			more = true
		}
	}
	if !more || r.opts.DryRun {
		return nil
	}
	return r.keep(ctx)
}

func (r *run) keep(ctx context.Context) error {
	if r.opts.Shared {
		return nil
	}
	r.keeping.Lock()
	defer r.keeping.Unlock()
	r.mu.Lock()
	records := maps.Clone(r.records)
	r.mu.Unlock()
	return r.explain(ctx, r.inv.ref(), r.retry.do(ctx, r.inv.ref(), func(ctx context.Context) error {
		err := r.inv.write(ctx, records)
		if errors.Is(err, ErrInventoryMoved) {
			return final{err}
		}
		return err
	}))
}

// applyIndex writes the object of that index, unless it was written already.
func (r *run) applyIndex(ctx context.Context, i int) error {
	if r.results[i].Action != "" {
		return nil
	}
	if err := r.awaitServers(ctx, r.orders[i]); err != nil {
		return err
	}
	result, rec, err := r.writeObject(ctx, r.orders[i])
	if err != nil {
		r.forget(r.orders[i].ref, err)
		return err
	}
	r.mu.Lock()
	r.results[i] = result
	if rec.Kind != "" {
		r.records[rec.key()] = rec
	}
	r.mu.Unlock()
	r.events.emit(Applied{Ref: result.Ref, Action: result.Action})
	return nil
}

// forget takes an object out of what is noted that was announced and can't have been made, because nobody serves its kind: a kind that is
// spelled wrong would be kept for ever, since nobody could look whether it is there.
func (r *run) forget(ref Ref, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec := r.records[ref.key()]; Classify(err) == ClassNoMatch && rec.UID == "" && r.live.hidden(ref) == nil {
		delete(r.records, ref.key())
	}
}

// each is parallel as the options allow.
func (r *run) each(n int, do func(int) error) error { return parallel(n, r.opts.Concurrency, do) }

func (r *run) outcome() *Outcome {
	out := &Outcome{}
	for _, x := range r.results {
		if x.Action != "" {
			out.Objects = append(out.Objects, x)
		}
	}
	out.Objects = append(out.Objects, r.pruned...)
	return out
}
