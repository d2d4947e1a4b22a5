package apply

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A waiter waits for objects. What its watches see is handed to one loop, which alone judges and keeps time.
type waiter struct {
	cluster *cluster
	opts    WaitOptions
	care    care
	events  *emitter
	begun   time.Time
	atOnce  []Ref // the objects that need no look
	items   []*waitItem
	groups  []*waitGroup
	scenes  map[string]*scene // by namespace
	late    map[string]bool   // by StorageClass: it binds for the first pod
	news    chan func()
	lists   chan struct{} // one for each list in flight
	ctx     context.Context
	running sync.WaitGroup
	took    time.Duration // by the last round of judging
}

const (
	// waitLists bounds the lists in flight. Watches are not bounded: they cost a stream each of one connection.
	waitLists = 16
	// waitSettle is the moment that is left to others after one object failed for good.
	waitSettle = 2 * time.Second
	// waitRest is how long news are gathered before they are judged, at least: one change of a namespace comes as many, and to judge a
	// thousand objects for each would keep a core busy.
	waitRest = 5 * time.Millisecond
)

func newWaiter(c *cluster, refs []Ref, opts WaitOptions) *waiter {
	w := &waiter{cluster: c, opts: opts, events: &emitter{fn: opts.Events}, scenes: map[string]*scene{}, late: map[string]bool{},
		news: make(chan func()), lists: make(chan struct{}, waitLists)}
	seen := map[Ref]bool{}
	groups := map[Ref]*waitGroup{}
	for _, ref := range slices.SortedFunc(slices.Values(refs), compareRefs) {
		if seen[ref.key()] {
			continue
		}
		seen[ref.key()] = true
		if w.needsNoLook(ref) {
			w.atOnce = append(w.atOnce, ref)
			continue
		}
		it := &waitItem{ref: ref, judge: progressJudge{grace: opts.Grace}}
		w.items = append(w.items, it)
		at := ref.key()
		at.Name = ""
		if groups[at] == nil {
			groups[at] = &waitGroup{items: map[string]*waitItem{}}
			w.groups = append(w.groups, groups[at])
		}
		groups[at].items[ref.Name] = it
	}
	return w
}

func (w *waiter) needsNoLook(ref Ref) bool {
	if ref.Group == "" && ref.Kind == "Secret" {
		return true
	}
	return len(w.opts.Readers) == 0 && readyAtOnce(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
}

func (w *waiter) run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer w.running.Wait()
	defer cancel()
	w.ctx, w.begun = inner, time.Now()
	for _, g := range w.groups {
		w.watchGroup(g)
	}
	var failed time.Time // when the first one failed
	for {
		now := time.Now()
		next := w.judge(now)
		w.took = time.Since(now)
		if w.left() == 0 {
			break
		}
		if failed.IsZero() && w.failed() {
			failed = now
		}
		if !failed.IsZero() {
			end := failed.Add(waitSettle)
			if !now.Before(end) {
				break
			}
			next = earliest(next, end)
		}
		if err := w.pause(next); err != nil {
			return w.interrupted(ctx)
		}
	}
	cancel()
	return w.result(ctx)
}

// pause takes in what the watches saw, or waits for the time to judge again. Its error is the end of the context.
func (w *waiter) pause(until time.Time) error {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(max(0, time.Until(until)))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-timer:
		return nil
	case take := <-w.news:
		take()
	}
	rest := time.After(max(waitRest, 4*w.took))
	for {
		select {
		case <-w.ctx.Done():
			return w.ctx.Err()
		case take := <-w.news:
			take()
		case <-rest:
			return nil
		}
	}
}

// tell hands what a watch saw to the loop.
func (w *waiter) tell(ctx context.Context, take func()) error {
	select {
	case w.news <- take:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// judge judges all objects about which something is new, and returns when to judge again; zero when only news can change anything.
func (w *waiter) judge(now time.Time) time.Time {
	var next time.Time
	for _, it := range w.items {
		if it.end == "" && (it.news || !it.again.IsZero() && !now.Before(it.again)) {
			it.news = false
			w.look(it, now)
			if it.end == endReady {
				w.tellReady(it.ref)
			}
		}
		if it.end == "" {
			next = earliest(next, it.again)
		}
	}
	for _, g := range w.groups {
		g.leaveWhenOver()
	}
	return next
}

func (w *waiter) tellReady(ref Ref) {
	if w.care.ready != nil {
		w.care.ready(ref)
	}
}

// earliest is the earlier time, where zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (w *waiter) left() int {
	n := 0
	for _, it := range w.items {
		if it.end == "" {
			n++
		}
	}
	return n
}

func (w *waiter) failed() bool {
	return slices.ContainsFunc(w.items, func(it *waitItem) bool { return it.end == endFailed })
}

// unready lists the objects that are not ready, those that failed first.
func (w *waiter) unready() []*waitItem {
	all := slices.DeleteFunc(slices.Clone(w.items), func(it *waitItem) bool { return it.end == endReady })
	slices.SortStableFunc(all, func(a, b *waitItem) int { return -cmp.Compare(a.end, b.end) })
	return all
}
