package main

import "fmt"

// A verdict is one limit beside what was measured.
type verdict struct {
	what     string
	measured float64
	limit    float64
	// atLeast turns the limit round.
	atLeast bool
}

func (v verdict) holds() bool {
	if v.atLeast {
		return v.measured >= v.limit
	}
	return v.measured <= v.limit
}

// What package apply promises, as multiples of raw in the same run where no unit is told. Times are the minima.
const (
	coldLimit         = 1.3
	noopLimit         = 0.05
	noopLimitSmall    = 0.25 // at 100 objects, where fixed costs weigh
	changeLimit       = 0.08
	noopRequests      = 15
	changeRequests    = 20
	fasterCold        = 2 // than each peer
	fasterNoop        = 20
	linearRoom        = 1.3 // the multiple of raw at 5,000 objects is at most this times the one at 1,000
	small, full, huge = 100, 1000, 5000
)

// judge lists the limits that hold for what was measured.
func judge(r results, sizes []int, engines []engine) []verdict {
	var all []verdict
	for _, size := range sizes {
		for _, e := range engines {
			if e.ours {
				all = append(all, judgeSize(r, size, e, engines)...)
			}
		}
	}
	return all
}

func judgeSize(r results, size int, e engine, engines []engine) []verdict {
	var all []verdict
	add := func(what string, measured, limit float64, atLeast bool) {
		all = append(all, verdict{fmt.Sprintf("%d objects: %s", size, what), measured, limit, atLeast})
	}
	times := func(p phase) float64 { return r.minima(size, e.name, "raw", p) }
	switch size {
	case small:
		add("no-op × raw", times(noop), noopLimitSmall, false)
	case full:
		add("cold × raw", times(cold), coldLimit, false)
		add("no-op × raw", times(noop), noopLimit, false)
		add("one changed × raw's no-op", r.seconds(size, e.name, change)/r.seconds(size, "raw", noop), changeLimit, false)
		add("requests of a no-op", float64(r.at(size, e.name, noop).requests), noopRequests, false)
		add("requests of one changed", float64(r.at(size, e.name, change).requests), changeRequests, false)
		for _, peer := range engines {
			if _, measured := r[key{size, peer.name, cold}]; peer.peer && measured {
				add("times as fast as "+peer.name+", cold", r.minima(size, peer.name, e.name, cold), fasterCold, true)
				add("times as fast as "+peer.name+", no-op", r.minima(size, peer.name, e.name, noop), fasterNoop, true)
			}
		}
	case huge:
		add("cold × raw", times(cold), coldLimit, false)
		if _, ok := r[key{full, e.name, cold}]; ok {
			for _, p := range []phase{cold, noop} {
				// Not seconds against seconds: the server itself grows more than linearly, and so does raw.
				add(fmt.Sprintf("%s × raw, by that at %d", p, full), times(p)/r.minima(full, e.name, "raw", p), linearRoom, false)
			}
		}
	}
	return all
}

func (r results) seconds(size int, engine string, p phase) float64 {
	return r.at(size, engine, p).min().Seconds()
}

// minima divides the least time of one engine by that of another.
func (r results) minima(size int, engine, by string, p phase) float64 {
	return r.seconds(size, engine, p) / r.seconds(size, by, p)
}
