package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	whyUnread    = "it exists and may not be read, so its keys were not compared"
	whyMadeAgain = "it was minted before and is gone: what was sealed with the old values can't be opened with the new ones"
	whyLost      = "the answer was lost, and it may not be read; it exists"
)

// writeMinted makes the values of a Secret that has none yet, and returns what it did and what the inventory is to keep.
func (r *run) writeMinted(ctx context.Context, o order) (ObjectResult, record, error) {
	blind := r.mayNotRead(o)
	if !blind {
		if err := r.seen(ctx, o.ref); err != nil {
			return ObjectResult{}, record{}, err
		}
	}
	rec, now := r.inv.records[o.ref.key()], r.live.get(o.ref)
	rec.Ref = o.ref
	if now != nil && r.proven(o, now, rec) {
		return ObjectResult{Ref: o.ref, UID: string(now.UID), Action: Unchanged}, rec, nil
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
	m := r.mintage(o, now == nil)
	var got *minted
	var unread bool
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		if blind && m.absent {
			if unread, err = m.taken(ctx, o.mint); unread || err != nil {
				return err
			}
		}
		got, err = m.ensure(ctx)
		// Reading follows on a look that saw it, or on a create that was refused because it is there.
		if cannot := (unreadable{}); errors.As(err, &cannot) && Classify(err) == ClassForbidden {
			unread = true
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return ObjectResult{}, record{}, r.tellMint(ctx, o, err)
	case unread:
		return m.unread(rec.UID, o), unreadRecord(rec, o), nil
	}
	result := got.result(o.ref, rec.UID != "")
	if result.Action == Minted && got.created && rec.UID != "" {
		r.events.emit(Warned{Ref: o.ref, Text: whyMadeAgain})
	}
	return result, record{Ref: o.ref, UID: got.uid, Want: o.want, Entry: got.version}, nil
}

// mayNotRead says that a minted Secret could not be looked at for lack of the right: it may be there or not.
func (r *run) mayNotRead(o order) bool {
	return o.mints() && Classify(r.live.hidden(o.ref)) == ClassForbidden
}

// mayStayUnseen says that an object need not be seen: a Secret that is minted, or was, when the caller may not read it.
func (r *run) mayStayUnseen(ref Ref, err error) bool {
	if ref.Group != "" || ref.Kind != "Secret" || Classify(err) != ClassForbidden {
		return false
	}
	if !r.wanted[ref.key()] {
		return r.inv.records[ref.key()].Want != "" // only minted Secrets have one
	}
	return slices.ContainsFunc(r.orders, func(o order) bool { return o.mints() && o.ref.key() == ref.key() })
}

func (r *run) mintage(o order, absent bool) *mintage {
	m := &mintage{
		secrets: r.cluster.typed.CoreV1().Secrets(o.ref.Namespace),
		ref:     o.ref,
		secret:  o.mint.secret,
		recipes: o.mint.recipes,
		absent:  absent,
	}
	if !r.opts.Shared {
		m.owner = r.set.ID()
	}
	m.allow = func(now *corev1.Secret) error {
		if now != nil {
			if err := r.claim(o.ref, now); err != nil {
				return final{err}
			}
		}
		return r.asPlanned(o, now)
	}
	return m
}

// asPlanned says that no plan is carried out, or that it says of what is there what is to be done to it now. What somebody makes after the
// look is added to.
func (r *run) asPlanned(o order, now *corev1.Secret) error {
	r.mu.Lock()
	s, planned := r.steps[o.ref.key()]
	r.mu.Unlock()
	if !planned || s.uid == "" {
		return nil
	}
	if now == nil {
		if s.version == "" { // the plan saw it on its way out
			return nil
		}
		return final{&movedObject{o.ref}}
	}
	if next := r.mintedStep(o, now); next.version == "" || !s.sameAs(next) {
		return final{&movedObject{o.ref}}
	}
	return nil
}

// taken asks, by a create that is not stored and holds no value worth hiding, whether something has the name: so no value is made in vain.
func (m *mintage) taken(ctx context.Context, d *declaration) (bool, error) {
	body := d.secret.DeepCopy()
	body.Data = d.placeholders()
	options := m.createOptions()
	options.DryRun = []string{metav1.DryRunAll}
	_, err := m.secrets.Create(context.WithValue(ctx, refKey{}, m.ref), body, options)
	switch {
	case Classify(err) == ClassAlreadyExists:
		return true, nil
	case err != nil && isDryRunUnsupported(err):
		return false, nil
	}
	return false, err
}

func isDryRunUnsupported(err error) bool {
	return strings.Contains(err.Error(), "does not support dry run")
}

// unread is the result for a Secret that is there and may not be read.
func (m *mintage) unread(was types.UID, o order) ObjectResult {
	result := ObjectResult{Ref: o.ref, UID: string(was), Action: Unchanged, Why: whyUnread}
	if m.lost {
		result.Action, result.UID, result.Why = Minted, "", strings.Join(o.mint.made(), ", ")+"; "+whyLost
	}
	return result
}

// unreadRecord keeps what is known; that keys are asked for marks it as a minted Secret, and without a UID proves nothing.
func unreadRecord(rec record, o order) record {
	if rec.UID == "" {
		rec.Want = o.want
	}
	return rec
}

// result says what was done. before says that an earlier run saw the Secret.
func (g *minted) result(ref Ref, before bool) ObjectResult {
	result := ObjectResult{Ref: ref, UID: string(g.uid), Action: Unchanged}
	switch {
	case len(g.keys) > 0:
		result.Action, result.Why = Minted, strings.Join(g.keys, ", ")
	case len(g.given) > 0:
		result.Action, result.Why = Configured, "given values were missing: "+strings.Join(g.given, ", ")
	case g.adopted:
		result.Action = Configured
	}
	if g.created && before {
		result.Why += "; " + whyMadeAgain
	}
	return result
}

// tellMint leaves the server's words out of an error where they may quote a value.
func (r *run) tellMint(ctx context.Context, o order, err error) error {
	var own *OwnedError
	var unowned *UnownedError
	var moved *movedObject
	if errors.As(err, &own) || errors.As(err, &unowned) || errors.As(err, &moved) {
		return err
	}
	var mint *MintError
	var empty *EmptyKeyError
	switch {
	case errors.As(err, &mint):
		return mint
	case errors.As(err, &empty):
		return empty
	}
	return discreet(o, r.explain(ctx, o.ref, err))
}
