package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// play tells the history to its end.
func (h *history) play(ctx context.Context) {
	h.t.Helper()
	v := h.look(ctx)
	for n := range 6 + h.random.IntN(9) {
		switch roll := h.random.IntN(100); {
		case n == 0 && roll < 70 || roll < 52:
			v = h.applies(ctx, v)
		case roll < 94:
			v = h.intervenes(ctx, v)
		default:
			v = h.withdraws(ctx, v, h.sides[h.random.IntN(2)], h.cut(25))
		}
		h.hold()
	}
	h.ends(ctx, v)
	h.hold()
	if testing.Verbose() {
		h.t.Log(h.story())
	}
}

// hold ends a history in which a rule was broken.
func (h *history) hold() {
	h.t.Helper()
	if len(h.faults) > 0 {
		h.t.Fatalf("%s\n%s", h.story(), strings.Join(h.faults, "\n"))
	}
}

// story is what happened until now, in words.
func (h *history) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "repeat it with: go test ./apply -run 'TestHistories/seed=%d$'\n", h.seed)
	fmt.Fprintf(&b, "namespaces %v, records of set a in %s, of set b in %s\n",
		h.places, h.sides[0].place, h.sides[1].place)
	for i, line := range h.told {
		fmt.Fprintf(&b, "%2d. %s\n", i+1, line)
	}
	return b.String()
}

func (h *history) tell(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf(format, args...))
}

// intervenes lets strangers do something.
func (h *history) intervenes(ctx context.Context, v view) view {
	h.t.Helper()
	acts := h.acts()
	for done := 1 + h.random.IntN(2); done > 0; {
		said := acts[h.random.IntN(len(acts))](ctx, v)
		if said == "" {
			continue
		}
		h.tell("a stranger %s", said)
		now := h.look(ctx)
		h.afterStranger(v, now)
		v = now
		done--
	}
	return v
}

// cut is one for some of the runs.
func (h *history) cut(percent int) cut {
	if !h.chance(percent) {
		return cut{}
	}
	c := h.anywhere()
	c.arrived = h.chance(50)
	return c
}

// anywhere is one of the requests of a run, rather one that writes.
func (h *history) anywhere() cut {
	if h.chance(60) {
		return cut{at: int64(1 + h.random.IntN(7)), writes: true}
	}
	return cut{at: int64(1 + h.random.IntN(20))}
}

// withdraws removes a set.
func (h *history) withdraws(ctx context.Context, v view, side *side, c cut) view {
	h.t.Helper()
	return h.carry(ctx, v, deal{side: side, withdraws: true, allowPrune: true}, c, false)
}

// carry runs a deal and holds what it did against the model.
func (h *history) carry(ctx context.Context, v view, d deal, c cut, byPlan bool) view {
	h.t.Helper()
	h.tell("%s", h.sayDeal(d, c, byPlan))
	step := len(h.told) - 1
	r := h.run(ctx, d, c, byPlan)
	h.told[step] += "\n      → " + h.sayOutcome(r, c)
	now := h.look(ctx)
	h.afterRun(d, v, now, r.err == nil && !r.met)
	d.side.refused = r.err != nil
	if r.met {
		return now
	}
	h.explained(d, v, now, r.err)
	if r.err == nil {
		h.tellsKept(d, v, r.outcome)
	}
	if r.plan != nil {
		h.samePlan(r, v, now)
	}
	return now
}

// races runs a deal while strangers are at work: right before one of its requests they do something.
func (h *history) races(ctx context.Context, v view, d deal, byPlan bool) view {
	h.t.Helper()
	c := h.anywhere()
	c.instead = func() {
		now := h.look(ctx)
		h.afterRun(d, v, now, false)
		v = h.intervenes(ctx, now)
	}
	h.tell("%s", h.sayDeal(d, c, byPlan))
	step := len(h.told) - 1
	r := h.run(ctx, d, c, byPlan)
	h.told[step] += "\n      → " + h.sayOutcome(r, c)
	now := h.look(ctx)
	h.afterRun(d, v, now, r.err == nil && !r.met)
	d.side.refused = r.err != nil
	return now
}

// ends lets go of everything and withdraws both sets.
func (h *history) ends(ctx context.Context, v view) {
	h.t.Helper()
	for h.one(v, func(s *sight, _ *thing) bool { return s.held }) != nil {
		h.tell("a stranger %s", h.letsGo(ctx, v))
		now := h.look(ctx)
		h.afterStranger(v, now)
		v = now
	}
	first := h.random.IntN(2)
	for _, i := range []int{first, 1 - first} {
		v = h.withdraws(ctx, v, h.sides[i], cut{})
		v = h.withdraws(ctx, v, h.sides[i], cut{}) // what Kubernetes held for a moment is forgotten by the next run
		if h.sides[i].refused {
			h.fault("the set %s can't be withdrawn", h.sides[i].name)
		}
		h.hold()
	}
	for _, s := range h.leftovers(v) {
		h.fault("%s is left, and both sets are withdrawn", h.say(s))
	}
	for _, side := range h.sides {
		h.recordsEnd(ctx, v, side)
	}
}

// recordsEnd: the records of a withdrawn set stay as long as something of it does.
func (h *history) recordsEnd(ctx context.Context, v view, side *side) {
	at := h.looker.Resource(recordResource()).Namespace(side.place)
	_, err := at.Get(ctx, apply.InventoryName(side.name), metav1.GetOptions{})
	owns := h.one(v, func(s *sight, t *thing) bool { return t.owner == side.id() }) != nil
	if gone := apierrors.IsNotFound(err); gone == owns || !gone && err != nil {
		h.fault("the set %s has objects: %t; its records: %v", side.name, owns, err)
	}
}

// sweep removes what lives in no namespace of the history's own.
func (h *history) sweep() {
	ctx := context.WithoutCancel(h.t.Context())
	v, err := h.list(ctx)
	if err != nil {
		h.t.Error(err)
	}
	for _, s := range v.sorted() {
		if !h.kinds[s.kind].cluster {
			continue
		}
		at := h.client(s.slot)
		if s.held {
			none := []byte(`{"metadata":{"finalizers":null}}`)
			_, err = at.Patch(ctx, s.object.GetName(), types.MergePatchType, none, metav1.PatchOptions{})
		}
		deleteErr := at.Delete(ctx, s.object.GetName(), metav1.DeleteOptions{})
		if err != nil || deleteErr != nil && !s.deleting {
			h.t.Errorf("sweep %s: %v, %v", h.say(s.slot), err, deleteErr)
		}
	}
}
