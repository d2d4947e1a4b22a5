package apply

import (
	"errors"
	"maps"
	"slices"
)

// mostPlaces bounds in how many places — a version of a kind, in one namespace — one run looks for objects that only the record lists.
const mostPlaces = 1000

// mostGets bounds how many objects that only the record lists are looked at one by one in a place where they can't be listed.
const mostGets = 200

var errTooManyPlaces = errors.New("the record lists objects in more places than one run looks into; the next one looks further")

// formerPlaces lists what the record lists and the set does not hold, as far as one run looks, and the rest.
func (r *run) formerPlaces() (near, far []Ref) {
	former := maps.Clone(r.inv.records)
	maps.DeleteFunc(former, func(k Ref, _ record) bool { return r.wanted[k] })
	return nearest(former)
}

// nearest are the first of the refs, by their places, and the rest. Each place costs a request or two.
func nearest(records map[Ref]record) (near, far []Ref) {
	places := map[Ref]bool{}
	for _, rec := range slices.SortedFunc(maps.Values(records), func(a, b record) int { return compareRefs(a.Ref, b.Ref) }) {
		at := rec.Ref
		at.Name = ""
		if !places[at] && len(places) == mostPlaces {
			far = append(far, rec.Ref)
			continue
		}
		places[at] = true
		near = append(near, rec.Ref)
	}
	return near, far
}
