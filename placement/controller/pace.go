package controller

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Bounds of the wait between two tries of a refused create.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
	// firstLag is the first wait for an API server that has not heard of a quota's change yet; the next is twice as long.
	firstLag = 100 * time.Millisecond
)

// retryAfter is how long to wait when a create has been refused since then: as long again.
func retryAfter(since, now time.Time) time.Duration {
	return min(max(now.Sub(since), minRetry), maxRetry)
}

// A pace remembers the refused creates and when they are tried again. It is lost with the process, which costs one try each.
type pace struct {
	mu  sync.Mutex
	all map[types.NamespacedName]pacing
}

// A pacing is one refused create.
type pacing struct {
	refusal refusal
	// created is the Sandbox's, generation that of the spec which was refused.
	created    time.Time
	generation int64
	since, at  time.Time
	// hint says that a try before its time may work.
	hint bool
	// lag is how long to wait when the hint still holds after the try; 0 when it does not.
	lag time.Duration
}

// again is when to look next.
func (t pacing) again(now time.Time) time.Duration {
	if t.lag > 0 {
		return t.lag
	}
	return max(t.at.Sub(now), time.Millisecond)
}

func newPace() *pace { return &pace{all: map[types.NamespacedName]pacing{}} }

// get is the refusal of that generation of the spec; another one was never tried.
func (p *pace) get(name types.NamespacedName, generation int64) (pacing, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.all[name]
	return t, ok && t.generation == generation
}

// try begins a try. A hint that comes after this is about the next one.
func (p *pace) try(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.all[name]; ok {
		t.hint = false
		p.all[name] = t
	}
}

// refused ends a try.
func (p *pace) refused(name types.NamespacedName, t pacing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.hint = t.lag > 0 || p.all[name].hint
	p.all[name] = t
}

func (p *pace) forget(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}

func (p *pace) hint(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.all[name]; ok {
		t.hint = true
		p.all[name] = t
	}
}

// waiting are those of a namespace that may be tried again, the oldest Sandbox first.
func (p *pace) waiting(namespace string, may func(refusal) bool) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []types.NamespacedName
	for name, t := range p.all {
		if name.Namespace == namespace && may(t.refusal) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return cmp.Or(p.all[a].created.Compare(p.all[b].created), cmp.Compare(a.Name, b.Name))
	})
	return names
}
