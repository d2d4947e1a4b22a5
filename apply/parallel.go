package apply

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls do for 0 to n-1, so many at a time as limit says, and joins the errors in order. One failure stops nobody else. A few
// goroutines take the calls one after the other: one for each call would spend more on growing its stack than a short call takes.
func parallel(n, limit int, do func(int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var g sync.WaitGroup
	for range min(n, limit) {
		g.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		})
	}
	g.Wait()
	return errors.Join(errs...)
}

// onAllProcessors is parallel for calls that only reckon.
func onAllProcessors(n int, do func(int) error) error { return parallel(n, runtime.GOMAXPROCS(0), do) }
