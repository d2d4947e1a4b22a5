package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jr2.dev/jr2/internal/clip"
)

// A TakenAwayError is an object that Apply wrote and that does not stay: when Apply was to end, it was gone, another
// one had its name, or a controller of the cluster was about to delete it.
type TakenAwayError struct {
	Ref Ref
	// Going says that it is there still, and goes as Why says. A plan foresees it so.
	Going bool
	// Why says what takes it away; empty when nothing tells.
	Why string
}

func (e *TakenAwayError) Error() string {
	what := "was taken away again after it was written"
	if e.Going {
		what = "does not stay"
	}
	if e.Why == "" {
		return fmt.Sprintf("%s %s, by whom nobody can tell", e.Ref, what)
	}
	return fmt.Sprintf("%s %s: %s", e.Ref, what, e.Why)
}

// takenAway is the error about an object in whose place there is nothing, or another one.
func takenAway(o order, now *metav1.PartialObjectMetadata, why string) *TakenAwayError {
	if why == "" && now != nil {
		why = fmt.Sprintf("another object has its name now, with the uid %s", now.UID)
	}
	return &TakenAwayError{Ref: o.ref, Why: why}
}

// lastLook ends an Apply that went well so far: what it wrote is looked at once more, in one list for each place,
// because "created" is only what the server answered then. Objects that a controller takes away by what they hold are
// found by that, and not by luck: it acts when it likes. A run that wrote nothing asks for nothing, but for the owners
// that manifests name.
func (r *run) lastLook(ctx context.Context, err error) error {
	if err != nil || r.opts.DryRun {
		return err
	}
	l := r.newLastLook()
	if err := l.awaitTokens(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	if err := l.lookAgain(ctx); err != nil {
		return errors.Join(l.err(), fmt.Errorf("a last look at what was written: %w", err))
	}
	l.foretell(ctx)
	return errors.Join(l.err(), r.noteTaken(ctx, l.taken))
}

// A lastLook is what the end of a run looks at, by index of the order, and what it finds.
type lastLook struct {
	r       *run
	written []int // by this run, to stay
	tokens  []int // token Secrets that may be without their token
	tied    []int // that a controller may take away by what they hold
	ties    *tieReader
	found   *live // of those that were written
	errs    []error
	taken   map[Ref]*TakenAwayError
}

func (r *run) newLastLook() *lastLook {
	l := &lastLook{r: r, ties: r.newTies(func(Ref) bool { return false }), found: newLive(), taken: map[Ref]*TakenAwayError{}}
	moved := r.movedAccounts()
	for i, o := range r.orders {
		fresh := r.wroteToStay(i)
		if fresh {
			l.written = append(l.written, i)
		}
		switch now := r.live.get(o.ref); {
		case !o.isTied() || o.pos.isHook() && !fresh:
		case !o.isToken():
			l.tied = append(l.tied, i)
		case fresh || moved[o.account().key()]:
			l.tied, l.tokens = append(l.tied, i), append(l.tokens, i)
		case now != nil && !hasToken(o, now): // a run that was cut off did not wait for it
			l.tokens = append(l.tokens, i)
		}
	}
	return l
}

func (l *lastLook) err() error { return errors.Join(l.errs...) }

func (l *lastLook) takes(e *TakenAwayError) {
	l.errs, l.taken[e.Ref.key()] = append(l.errs, e), e
}

// awaitTokens returns only what keeps it from an answer; whatever it finds is kept.
func (l *lastLook) awaitTokens(ctx context.Context) error {
	err := l.r.awaitTokens(ctx, l.tokens)
	for _, one := range joined(err) {
		if away := (*TakenAwayError)(nil); errors.As(one, &away) {
			l.takes(away)
		} else if one != nil {
			l.errs = append(l.errs, one)
		}
	}
	return err
}

// lookAgain compares the UIDs of what was written.
func (l *lastLook) lookAgain(ctx context.Context) error {
	refs := make([]Ref, len(l.written))
	for n, i := range l.written {
		refs[n] = l.r.orders[i].ref
	}
	if err := l.r.lookInto(ctx, refs, l.found); err != nil {
		return err
	}
	for _, i := range l.written {
		o := l.r.orders[i]
		now := l.found.get(o.ref)
		if l.taken[o.ref.key()] != nil || l.found.hidden(o.ref) != nil {
			continue
		}
		switch {
		case now == nil || now.UID != l.r.uidOf(i):
			l.takes(takenAway(o, now, l.ties.why(ctx, o, nil)))
		case !l.r.opts.Shared && now.Annotations[SetAnnotation] != "" && now.Annotations[SetAnnotation] != l.r.set.ID():
			l.takes(takenAway(o, now, "it belongs to the set "+clip.Text(now.Annotations[SetAnnotation])+" now"))
		}
	}
	return nil
}

// foretell finds what is there still and goes.
func (l *lastLook) foretell(ctx context.Context) {
	for _, i := range l.tied {
		o := l.r.orders[i]
		now := l.found.get(o.ref)
		if now == nil {
			now = l.r.live.get(o.ref) // one that was not written
		}
		if l.taken[o.ref.key()] != nil || now == nil {
			continue
		}
		if why := l.ties.why(ctx, o, now); why != "" {
			l.takes(&TakenAwayError{Ref: o.ref, Going: true, Why: why})
		}
	}
}

// joined takes errors.Join apart, at any depth.
func joined(err error) []error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range many.Unwrap() {
		all = append(all, joined(one)...)
	}
	return all
}

// wroteToStay says that this run wrote the object and that it is to be there afterwards. A hook is done when it
// succeeded: one that is to go then went, and one of a kind that ends may be collected by whatever ran it, as may a Job
// with a time to live.
func (r *run) wroteToStay(i int) bool {
	o := r.orders[i]
	switch action := r.results[i].Action; {
	case action == "" || action == Unchanged || r.uidOf(i) == "":
		return false
	case o.pos.isHook():
		kind := schema.GroupKind{Group: o.ref.Group, Kind: o.ref.Kind}
		return action == Ran && o.pos.phases[0] != SyncFail && !o.pos.whenSucceeded && readyAtOnce(kind)
	}
	return o.ref.Group != "batch" || o.ref.Kind != "Job" || dig(o.body.Object, "spec", "ttlSecondsAfterFinished") == nil
}

// movedAccounts lists the accounts that this run made or removed, by key.
func (r *run) movedAccounts() map[Ref]bool {
	moved := map[Ref]bool{}
	for _, x := range slices.Concat(r.results, r.pruned) {
		if x.Ref.Group != "" || x.Ref.Kind != "ServiceAccount" {
			continue
		}
		switch x.Action {
		case Created, Recreated, Ran, Pruned:
			moved[x.Ref.key()] = true
		}
	}
	return moved
}

// noteTaken has the results say what became of the objects, and hooks run again that left nothing.
func (r *run) noteTaken(ctx context.Context, taken map[Ref]*TakenAwayError) error {
	again := false
	for i, o := range r.orders {
		err := taken[o.ref.key()]
		if err == nil {
			continue
		}
		r.mu.Lock()
		r.results[i].Why = strings.TrimPrefix(err.Error(), o.ref.String()+" ")
		r.mu.Unlock()
		if o.pos.isHook() && r.inv.release != nil {
			r.keeping.Lock()
			r.inv.release = r.inv.release.without(o.ref)
			r.keeping.Unlock()
			again = true
		}
	}
	if !again {
		return nil
	}
	return r.keep(ctx)
}

// foresee says of a step what the last look of an Apply would find, as far as that is known before the write.
func (t *tieReader) foresee(ctx context.Context, o order, s Step) Step {
	if s.err != nil || !o.isTied() || o.pos.isHook() && s.Intent != WillRun || o.isToken() && s.Intent == WillLeave {
		return s
	}
	if why := t.why(ctx, o, nil); why != "" {
		return s.fails(WillFail, &TakenAwayError{Ref: o.ref, Going: true, Why: why})
	}
	return s
}

// arrivesWith says that an object comes with the set, or with a namespace that does.
func (r *run) arrivesWith(ref Ref) bool {
	return r.wanted[ref.key()] || ref.Name == "default" && r.arrives(ref)
}
