package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A cell is what was measured of one engine in one phase at one size.
type cell struct {
	times    []time.Duration
	requests int64
}

func (c cell) min() time.Duration { return slices.Min(c.times) }

func (c cell) median() time.Duration {
	sorted := slices.Sorted(slices.Values(c.times))
	return sorted[len(sorted)/2]
}

// A key names a cell.
type key struct {
	size   int
	engine string
	phase  phase
}

type results map[key]*cell

func (r results) at(size int, engine string, p phase) *cell {
	k := key{size, engine, p}
	if r[k] == nil {
		r[k] = &cell{}
	}
	return r[k]
}

// A step of a round is taken by all engines before the next one.
type step struct {
	phase   phase
	changed bool
}

// steps gives two samples of the cheap phases for one of the dear.
func steps() []step {
	return []step{{cold, false}, {noop, false}, {change, true}, {noop, true}, {change, false}}
}

// warmUp is how many objects each engine applies before it is timed: the server computes schemas when they are first asked for, and the
// commands have their caches of the discovery from then on, as on the machine of one who uses them.
const warmUp = 100

// round measures all engines at one size, on a cluster of its own. The requests are counted, in an untimed pass, when count is set.
func round(ctx context.Context, number, size int, engines []engine, into results, count bool, logf func(string, ...any)) (err error) {
	s, err := openSite(ctx, logf)
	if err != nil {
		return fmt.Errorf("start a cluster: %w", err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	order := slices.Clone(engines)
	if number%2 == 1 {
		slices.Reverse(order)
	}
	shift := number / 2 % len(order)
	order = append(order[shift:], order[:shift]...)
	if err := s.pass(ctx, s.direct, "warm", warmUp, order, nil); err != nil {
		return err
	}
	err = s.pass(ctx, s.direct, "timed", size, order, func(e engine, p phase, took time.Duration, _ int64) {
		into.at(size, e.name, p).times = append(into.at(size, e.name, p).times, took)
		logf("%d objects, round %d, %-7s %-22s %s", size, number+1, p, e.name, took.Round(time.Millisecond))
	})
	if err != nil || !count {
		return err
	}
	if err := s.pass(ctx, s.counted, "warm-counted", warmUp, order, nil); err != nil {
		return err
	}
	return s.pass(ctx, s.counted, "counted", size, order, func(e engine, p phase, _ time.Duration, requests int64) {
		into.at(size, e.name, p).requests = requests
	})
}

// pass takes all steps with all engines, each in a namespace of its own.
func (s *site) pass(ctx context.Context, w way, prefix string, size int, engines []engine, saw func(engine, phase, time.Duration, int64)) error {
	for _, e := range engines {
		if slices.Contains(e.phasesOrAll(), cold) {
			if err := s.newNamespace(ctx, prefix+"-"+e.slug()); err != nil {
				return err
			}
		}
	}
	for _, st := range steps() {
		for _, e := range engines {
			if !slices.Contains(e.phasesOrAll(), st.phase) {
				continue
			}
			took, requests, err := s.run(ctx, w, prefix+"-"+e.slug(), size, st, e)
			if err != nil {
				return fmt.Errorf("%s, %s, %d objects: %w", e.name, st.phase, size, err)
			}
			if saw != nil {
				saw(e, st.phase, took, requests)
			}
		}
	}
	return nil
}

func (s *site) run(ctx context.Context, w way, namespace string, size int, st step, e engine) (time.Duration, int64, error) {
	j, err := s.job(w, namespace, size, st.changed)
	if err != nil {
		return 0, 0, err
	}
	act, err := e.prepare(j)
	if err != nil {
		return 0, 0, err
	}
	runtime.GC() // the garbage of the last engine is not this one's
	before := s.count.Load()
	started := time.Now()
	err = act(ctx)
	took := time.Since(started)
	requests := s.count.Load() - before
	if err != nil {
		return 0, 0, err
	}
	if err := s.cluster.Err(); err != nil {
		return 0, 0, err
	}
	return took, requests, s.settle(ctx, namespace)
}

func (e engine) phasesOrAll() []phase {
	if e.phases == nil {
		return phases()
	}
	return e.phases
}

// slug is the name for namespaces.
func (e engine) slug() string {
	if e.within != "" {
		return e.within
	}
	return strings.Join(strings.FieldsFunc(strings.ToLower(e.name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}
