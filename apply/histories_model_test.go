package apply_test

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
)

// The model of who made what and who asked for what. It is written from the rules that people are promised, and not
// from what the engine does:
//
//   - A set's own is what its runs made, and what it was told to take over (Adopt for an object of nobody, AdoptFrom
//     for one of another set), until somebody takes it away: another set that is told to, or a stranger who removes or
//     rewrites the mark.
//   - A run may write only what it is asked for, and of that only its own and what may be taken over. It makes only
//     what it is asked for.
//   - A run may delete only its own, and of that only what it is not asked for any more. What is to be kept stays: by
//     an annotation that it carries, or by the last manifest of it. What holds data stays, unless it is named or the
//     whole set is withdrawn.
//   - What may go does go, with a run that succeeds.

// A thing is one object from its creation to its end, under whatever name.
type thing struct {
	slot
	maker string // a set, or the stranger
	owner string // the set whose own it is; "" for none
	// listed are the sets whose records may name it, because it was theirs once or a stranger wrote that.
	listed []*side
	// touched says that a stranger wrote it, so that the server may refuse a write with a conflict.
	touched bool
	// doomed says that somebody who may delete it has done so; finalizers may hold it still.
	doomed bool
}

const stranger = "the stranger"

// A saying is whether the last manifest of an object said to keep it. A run that was cut off leaves open which one that
// is.
type saying struct{ keep, open bool }

// A side is what the model holds of one set.
type side struct {
	name, place string // of the set, and the namespace of its records
	folder      string // of its manifests; "" when they are Go values
	manifest    map[slot]wanted
	said        map[slot]saying
	refused     bool // its last run was
}

func (s *side) id() string { return s.place + "/" + s.name }

// A deal is what a run of a set is told.
type deal struct {
	side       *side
	manifest   map[slot]wanted // none for a set that is withdrawn
	withdraws  bool
	prune      bool
	adopt      bool
	adoptFrom  bool // the other set
	takes      bool // fields of strangers
	allowPrune bool
	named      []slot // data to delete
}

// mayTake says whether a run may write an object that is there. What carries the set's mark by a stranger's hand, and
// is the very object that the set's records name, is taken for one of which the server's notes were lost.
func (h *history) mayTake(d deal, was *sight, t *thing) bool {
	switch t.owner {
	case d.side.id():
		return true
	case "":
		return d.adopt || was.annotation == d.side.id() && slices.Contains(t.listed, d.side)
	}
	return d.adoptFrom
}

// A verdict says whether a run may delete an object, and whether it has to.
type verdict struct {
	may, must bool
	why       string
}

// judge is the rule of what goes.
func (h *history) judge(d deal, was *sight, t *thing) verdict {
	stays := func(format string, args ...any) verdict { return verdict{why: fmt.Sprintf(format, args...)} }
	_, asked := d.manifest[was.slot]
	said := d.side.said[was.slot]
	switch {
	case t.owner == "":
		return stays("it is of no set; %s made it", t.maker)
	case t.owner != d.side.id():
		return stays("it is of the set %s", t.owner)
	case asked:
		return stays("the set asks for it")
	case !d.prune && !d.withdraws:
		return stays("the run prunes nothing")
	case was.keep != "":
		return stays("it is to be kept: %s", was.keep)
	case said.keep && !said.open:
		return stays("its last manifest said to keep it")
	case was.data && !d.withdraws && !slices.Contains(d.named, was.slot):
		return stays("it holds data and is not named")
	case said.open:
		return verdict{may: true, why: "whether its last manifest said to keep it is open"}
	}
	return verdict{may: true, must: true, why: "the set made or adopted it, and gave it up"}
}

// fault notes that a rule is broken.
func (h *history) fault(format string, args ...any) {
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

// afterRun holds the change of the cluster against the rules, and notes what is new.
func (h *history) afterRun(d deal, before, after view, succeeded bool) {
	for _, was := range before.sorted() {
		t, now := h.things[was.uid], after[was.uid]
		verdict := h.judge(d, was, t)
		switch deleted := now == nil || now.deleting; {
		case deleted && !t.doomed && !verdict.may:
			h.fault("%s is deleted, and must stay: %s", h.say(was.slot), verdict.why)
		case !deleted && succeeded && verdict.must:
			h.fault("%s is still there, and had to go: %s", h.say(was.slot), verdict.why)
		case deleted:
			t.doomed = true
		}
		if now != nil {
			h.afterWrite(d, was, now, t)
		}
	}
	for _, now := range after.sorted() {
		if before[now.uid] != nil {
			continue
		}
		if _, asked := d.manifest[now.slot]; !asked {
			h.fault("%s was made, and the set does not ask for it", h.say(now.slot))
		}
		h.things[now.uid] = &thing{slot: now.slot, maker: d.side.id(), owner: d.side.id(), listed: []*side{d.side}}
	}
	h.afterSayings(d, succeeded)
	if succeeded {
		h.wantAll(d, after)
	}
	h.checkMarks(after)
}

// afterWrite looks at an object that was there before the run and is there still.
func (h *history) afterWrite(d deal, was, now *sight, t *thing) {
	_, asked := d.manifest[was.slot]
	taken := asked && now.mark == d.side.id() && t.owner != d.side.id()
	if was.digest != now.digest || taken {
		switch {
		case !asked:
			h.fault("%s is changed, and the set does not ask for it", h.say(was.slot))
		case !h.mayTake(d, was, t):
			h.fault("%s is written, and the run may not take it over: its owner is %q, %s made it",
				h.say(was.slot), t.owner, t.maker)
		}
	}
	if t.owner != d.side.id() && !d.takes && lostAValue(was, now) {
		h.fault("a value of %s, which %s made, is replaced, and nobody named its manager", h.say(was.slot), t.maker)
	}
	if taken {
		t.owner, t.listed = d.side.id(), append(t.listed, d.side)
	}
}

// lostAValue says that a Secret has not every value any more that it had.
func lostAValue(was, now *sight) bool {
	if was.object.GetKind() != "Secret" {
		return false
	}
	before, _, _ := unstructured.NestedMap(was.object.Object, "data")
	after, _, _ := unstructured.NestedMap(now.object.Object, "data")
	for key, value := range before {
		if after[key] != value {
			return true
		}
	}
	return false
}

// afterSayings notes which objects their manifests say to keep.
func (h *history) afterSayings(d deal, succeeded bool) {
	for s, w := range d.manifest {
		keep := saying{keep: w.keep > 0}
		if was := d.side.said[s]; !succeeded && (was.open || was.keep != keep.keep) {
			keep = saying{keep: true, open: true}
		}
		d.side.said[s] = keep
	}
}

// wantAll looks for what a run that succeeded must have made.
func (h *history) wantAll(d deal, after view) {
	for s, w := range d.manifest {
		now := after.at(s)
		if now == nil || now.deleting {
			h.fault("%s is not there, and the run that was asked for it succeeded", h.say(s))
			continue
		}
		if t := h.things[now.uid]; t.owner != d.side.id() {
			h.fault("%s is not the set's (its owner is %q), and the run that was asked for it succeeded", h.say(s), t.owner)
		}
		if got, want := now.object.GetLabels()["value"], fmt.Sprint("v", w.value); got != want {
			h.fault("%s is %s, and the run that asked for %s succeeded", h.say(s), got, want)
		}
	}
}

// checkMarks: the mark on the objects says the same as the model.
func (h *history) checkMarks(after view) {
	for _, now := range after.sorted() {
		if t := h.things[now.uid]; now.mark != t.owner {
			h.fault("%s carries the mark of %q, and the model has it of %q", h.say(now.slot), now.mark, t.owner)
		}
	}
}

// afterStranger notes what a stranger did; nothing else may have happened.
func (h *history) afterStranger(before, after view) {
	for _, was := range before.sorted() {
		if after[was.uid] == nil && !h.things[was.uid].doomed {
			h.fault("%s is gone, and nobody deleted it", h.say(was.slot))
		}
	}
	for _, now := range after.sorted() {
		if h.things[now.uid] == nil {
			h.things[now.uid] = &thing{slot: now.slot, maker: stranger, touched: true}
		}
	}
	h.checkMarks(after)
}

// tellsKept: what is the set's own and stays though it left the set is told, with the reason.
func (h *history) tellsKept(d deal, before view, outcome *apply.Outcome) {
	for _, was := range before.sorted() {
		_, asked := d.manifest[was.slot]
		left := h.things[was.uid].owner == d.side.id() && !asked && (d.prune || d.withdraws)
		if !left || was.deleting || h.judge(d, was, h.things[was.uid]).may {
			continue
		}
		told := slices.ContainsFunc(outcome.Objects, func(o apply.ObjectResult) bool {
			return o.UID == string(was.uid) && o.Action == apply.Kept && o.Why != ""
		})
		if !told {
			h.fault("%s is the set's, left it and stays, and the run does not say why", h.say(was.slot))
		}
	}
}

// leftovers are wrong when both sets are withdrawn: only what strangers made or took over is left, and what is to be
// kept.
func (h *history) leftovers(v view) []slot {
	var wrong []slot
	for _, seen := range v.sorted() {
		kept := seen.keep != ""
		for _, side := range h.sides {
			kept = kept || h.things[seen.uid].owner == side.id() && side.said[seen.slot].keep
		}
		if h.things[seen.uid].owner != "" && !kept {
			wrong = append(wrong, seen.slot)
		}
	}
	return wrong
}
