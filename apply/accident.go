package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Thresholds of a prune that is questioned for its size alone.
const (
	// accidentOfAll is how many objects must go when nothing of the set stays.
	accidentOfAll = 3
	// accidentOfMost is how many objects must go when they are more than half of the set.
	accidentOfMost = 10
)

// An AccidentError is a prune that looks like an accident: it follows from less being read than at the last apply.
// Nothing was written. Options.AllowPrune agrees to it, and Options.ConfirmPrune asks. Only a set that Read made of a
// Directory or a Kustomization is held back, and only when something would go now. The doubts are:
//
//   - A file looks like a manifest, is not read (see Set.Unread), and holds one of the objects that go; or it is new
//     since the last apply and holds one of their kind, or can't be made out. A file that was not read at the last
//     apply either, and holds the same, is none.
//   - A file gave objects at the last apply, is still there, and is not read now or gives none: it was emptied, a
//     kustomization came into the directory, or none names it any more. A file that was removed is no doubt, and
//     neither is one that gives fewer objects.
//   - Nothing of what the set holds stays, though other objects come or no file of the last apply is read, so that it
//     may be another directory, or the name of another set; this from 3 objects that go, or from one when the files
//     tell it.
//   - 10 objects or more go, and they are more than half.
//   - The record does not say what was read at the last apply, or somebody else than this engine wrote that there. It is in a ConfigMap, so
//     this is no guard against people who edit one to deceive it.
//
// Namespaces and other kinds that hold data count neither as staying nor as going.
type AccidentError struct {
	Set    string  `json:"set"` // Set.ID
	Goes   []Ref   `json:"goes"`
	Doubts []Doubt `json:"doubts"`
}

// A Doubt is one sign that a prune is an accident.
type Doubt struct {
	File string `json:"file,omitempty"` // as UnreadFile.Path; empty when the whole is meant
	Why  string `json:"why"`
}

// String is "apps/web.yaml: it looks like a manifest …".
func (d Doubt) String() string {
	if d.File == "" {
		return d.Why
	}
	return d.File + ": " + d.Why
}

// Bounds of the lists in the text of an AccidentError.
const (
	listedDoubts = 10
	listedGoing  = 20
)

func (e *AccidentError) Error() string {
	return e.story() + "\nput what is missing where it is read (a kustomization lists it in resources), " +
		"or agree to the deletion (Options.AllowPrune)"
}

// Question asks a person whether the objects are to be deleted.
func (e *AccidentError) Question() string { return e.story() + "\ndelete what left the set? [y/N] " }

func (e *AccidentError) story() string {
	going := make([]string, len(e.Goes))
	for i, ref := range e.Goes {
		going[i] = ref.String()
	}
	return fmt.Sprintf("%s of the set %s would be deleted, and it looks like an accident:\n  %s\nwould be deleted: %s",
		objectCount(len(e.Goes)), e.Set, strings.Join(e.doubts(), "\n  "), strings.Join(bounded(going, listedGoing), ", "))
}

func (e *AccidentError) doubts() []string {
	lines := make([]string, len(e.Doubts))
	for i, d := range e.Doubts {
		lines[i] = d.String()
	}
	return bounded(lines, listedDoubts)
}

// bounded keeps the first n of a list and says how many more there are.
func bounded(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(slices.Clone(list[:n]), fmt.Sprintf("and %d more", len(list)-n))
}

func objectCount(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// ErrPruneDeclined is Apply's error when Options.ConfirmPrune said no. Nothing was written.
var ErrPruneDeclined = errors.New("the prune was declined, and nothing was changed")

// agreeToPrune refuses a prune that looks like an accident, or asks, before the first write.
func (r *run) agreeToPrune(ctx context.Context) error {
	if !r.opts.Prune || r.opts.Shared || r.opts.AllowPrune || r.set.reading == nil {
		return nil
	}
	goes, err := r.going(ctx)
	if err != nil {
		return err
	}
	accident := r.accident(goes)
	switch {
	case accident == nil:
		return nil
	case r.opts.ConfirmPrune == nil:
		return accident
	case r.opts.DryRun:
		return nil
	}
	agreed, err := r.opts.ConfirmPrune(ctx, accident)
	if err == nil && !agreed {
		err = ErrPruneDeclined
	}
	return err
}

// going lists what a prune would delete now.
func (r *run) going(ctx context.Context) ([]Ref, error) {
	all, err := r.departures(ctx, r.inv.records)
	var goes []Ref
	for _, d := range all {
		if d.action == Pruned {
			goes = append(goes, d.Ref)
		}
	}
	return goes, err
}

// accident says why deleting these objects looks like an accident; nil when it does not.
func (r *run) accident(goes []Ref) *AccidentError {
	if r.set.reading == nil || len(goes) == 0 {
		return nil
	}
	last := r.inv.knownReading()
	e := &AccidentError{Set: r.set.ID(), Goes: goes}
	for i, f := range r.set.reading {
		var was *notedPlace
		if i < len(last) {
			was = &last[i]
		}
		e.Doubts = append(e.Doubts, f.doubts(was, goes)...)
	}
	if why := r.tooMuch(goes, last); why != "" {
		e.Doubts = append(e.Doubts, Doubt{Why: why})
	}
	if len(e.Doubts) == 0 && last == nil && r.inv.sawObjects() {
		e.Doubts = append(e.Doubts, Doubt{Why: whyNoReading})
	}
	if len(e.Doubts) == 0 {
		return nil
	}
	return e
}

const whyNoReading = "nobody knows what was read at the last apply: the record does not say it, or somebody else wrote what it says"

// doubts compares what is read of a place now with what was; was is nil when that is not known.
func (f *folder) doubts(was *notedPlace, goes []Ref) []Doubt {
	var doubts []Doubt
	told := map[string]bool{}
	tell := func(file, format string, args ...any) {
		told[file] = true
		doubts = append(doubts, Doubt{File: f.shown(file), Why: fmt.Sprintf(format, args...)})
	}
	if was != nil {
		for _, file := range slices.Sorted(maps.Keys(was.Read)) {
			gave, gives := was.Read[file], f.objects[file]
			_, read := f.objects[file]
			switch {
			case gave <= 0 || gives > 0:
			case read:
				tell(file, "it gave %s at the last apply, and gives none now", objectCount(gave))
			case f.holds(file):
				tell(file, "it gave %s at the last apply, and is still there and not read now: %s", objectCount(gave), f.why(file))
			}
		}
	}
	for _, u := range f.unread {
		held := u.holding(goes)
		var before string
		if was != nil {
			before = was.Unread[u.path]
		}
		switch {
		case told[u.path], before == u.sum():
		case len(held) > 0:
			tell(u.path, "it looks like a manifest of %s and is not read: %s", held[0], f.why(u.path))
		case was != nil && before == "" && !was.Cut && !f.cut && u.mayHold(goes):
			tell(u.path, "it looks like a manifest, is new since the last apply, and is not read: %s", f.why(u.path))
		}
	}
	return doubts
}

// tooMuch says why the number of objects that go is doubtful; "" when it is not.
func (r *run) tooMuch(goes []Ref, last []notedPlace) string {
	counts := func(ref Ref) bool { return !holdsData(ref) }
	stays, leaves, comes := 0, 0, 0
	for _, ref := range goes {
		if counts(ref) {
			leaves++
		}
	}
	for _, o := range r.orders {
		if !counts(o.ref) {
			continue
		}
		if _, held := r.inv.records[o.ref.key()]; held {
			stays++
		} else {
			comes++
		}
	}
	const which = "it may be another directory, or the name of another set"
	elsewhere := r.set.reading.sharesNothingWith(last)
	switch {
	case stays == 0 && (elsewhere && leaves > 0 || leaves >= accidentOfAll && (comes > 0 || last == nil)):
		return "nothing of what the set holds stays: " + which
	case leaves >= accidentOfMost && leaves > stays:
		return fmt.Sprintf("%d objects go and %d stay: %s", leaves, stays, which)
	}
	return ""
}

// sharesNothingWith says that there was a last reading, and none of the files that gave objects then is read now.
func (r reading) sharesNothingWith(last []notedPlace) bool {
	gave := false
	for i, was := range last {
		for file, n := range was.Read {
			if n <= 0 {
				continue
			}
			gave = true
			if i < len(r) && r[i].objects[file] > 0 {
				return false
			}
		}
	}
	return gave
}
