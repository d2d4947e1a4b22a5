package config

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// watchMemory calls exceeded once when the live heap of this process has grown by more than limit since the call. stop ends the
// watch and waits for it.
//
// The evaluator does not count what its script holds, so the heap of the process stands in for it: what other goroutines allocate
// meanwhile counts as well. Single large allocations, which a watch would see too late, are bounded by guards.js.
func watchMemory(limit int64, exceeded func()) (stop func()) {
	const every = 2 * time.Millisecond
	quit, ended := make(chan struct{}), make(chan struct{})
	base := heapInUse()
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		collected := base
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			now := heapInUse()
			// Garbage counts until it is collected; collect before judging, but not at every tick.
			if now-base <= limit || now-collected <= limit/4 {
				continue
			}
			runtime.GC()
			if collected = heapInUse(); collected-base > limit {
				exceeded()
				return
			}
		}
	}()
	var once sync.Once
	return func() { once.Do(func() { close(quit); <-ended }) }
}

func heapInUse() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}
