package apply_test

import (
	"context"
	"maps"
	"slices"
)

// applies lets a set change and be applied.
func (h *history) applies(ctx context.Context, v view) view {
	h.t.Helper()
	side := h.sides[h.random.IntN(2)]
	for len(side.manifest) == 0 {
		for range 2 + h.random.IntN(4) {
			h.gain(side, func(slot) bool { return true })
		}
	}
	if side.refused && h.chance(50) {
		h.yields(side, v)
	}
	for range h.random.IntN(4) {
		h.edit(side)
	}
	d := h.offer(side, v)
	if h.chance(15) {
		return h.races(ctx, v, d, h.chance(40))
	}
	return h.carry(ctx, v, d, h.cut(20), h.chance(40))
}

// offer is what a run is told: rather what it needs, and sometimes not.
func (h *history) offer(side *side, v view) deal {
	d := deal{side: side, manifest: maps.Clone(side.manifest)}
	d.prune, d.takes, d.allowPrune = h.chance(94), h.chance(75), h.chance(70)
	nobodys, others := false, false
	for _, seen := range v.sorted() {
		_, asked := side.manifest[seen.slot]
		owner := h.things[seen.uid].owner
		nobodys, others = nobodys || asked && owner == "", others || asked && owner == h.other(side).id()
		if !asked && seen.data && owner == side.id() && h.chance(40) {
			d.named = append(d.named, seen.slot)
		}
	}
	d.adopt, d.adoptFrom = h.chance(7) || nobodys && h.chance(50), h.chance(7) || others && h.chance(65)
	return d
}

// yields gives way to what others have.
func (h *history) yields(side *side, v view) {
	for _, seen := range v.sorted() {
		if h.things[seen.uid].owner != side.id() || seen.deleting {
			delete(side.manifest, seen.slot)
		}
	}
}

// edit changes what a set asks for.
func (h *history) edit(side *side) {
	const most = 6
	own := slices.SortedFunc(maps.Keys(side.manifest), compareSlots)
	if len(own) == 0 {
		h.gain(side, func(slot) bool { return true })
		return
	}
	s := own[h.random.IntN(len(own))]
	w := side.manifest[s]
	switch roll := h.random.IntN(100); {
	case roll < 25 && len(own) < most:
		h.gain(side, func(slot) bool { return true })
	case roll < 42:
		delete(side.manifest, s)
	case roll < 52: // a new name, or another namespace
		delete(side.manifest, s)
		h.gain(side, func(to slot) bool { return to.kind == s.kind && to != s })
	case roll < 67:
		w.value++
		side.manifest[s] = w
	case roll < 77:
		if w.keep = 0; side.manifest[s].keep == 0 {
			w.keep = 1 + h.random.IntN(len(keepWords())-1)
		}
		side.manifest[s] = w
	case roll < 88:
		h.restray(side)
	default:
		h.transfer(h.other(side), side)
	}
}

// gain asks for one more object, seldom for one that the other set asks for.
func (h *history) gain(side *side, which func(slot) bool) {
	free := slices.DeleteFunc(h.slots(), func(s slot) bool {
		_, own := side.manifest[s]
		return own || !which(s) || h.asks(s) && h.chance(80)
	})
	if len(free) == 0 {
		return
	}
	w := wanted{value: int64(1 + h.random.IntN(4))}
	if h.chance(12) {
		w.keep = 1 + h.random.IntN(len(keepWords())-1)
	}
	s := free[h.random.IntN(len(free))]
	if h.kinds[s.kind].cluster && h.chance(40) {
		w.stray = 1 + h.random.IntN(len(h.places))
	}
	side.manifest[s] = w
}

// restray puts a namespace into the manifests of cluster-scoped objects, or another one, or takes it out.
func (h *history) restray(side *side) {
	for _, s := range slices.SortedFunc(maps.Keys(side.manifest), compareSlots) {
		if h.kinds[s.kind].cluster {
			w := side.manifest[s]
			w.stray = h.random.IntN(1 + len(h.places))
			side.manifest[s] = w
		}
	}
}

// transfer moves an object from one set to the other. Which of them is applied first is left to what follows.
func (h *history) transfer(from, to *side) {
	own := slices.SortedFunc(maps.Keys(from.manifest), compareSlots)
	if len(own) == 0 {
		return
	}
	s := own[h.random.IntN(len(own))]
	to.manifest[s] = from.manifest[s]
	if h.chance(70) {
		delete(from.manifest, s)
	}
}
