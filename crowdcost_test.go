package jr2_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
)

// A cost is what some checks took.
type cost struct {
	took     time.Duration
	cpu      time.Duration // of this process, so that others on the machine do not count
	requests []devcluster.AuditEvent
	bytes    int64 // of answers, as they are after decompression
	peak     int64 // of the heap above what it was, garbage included
}

// costs measures what asks with a configuration.
func costs(t testing.TB, cluster *devcluster.Cluster, ask func(*rest.Config)) cost {
	t.Helper()
	config := cluster.Config()
	witness, err := cluster.Witness(config)
	if err != nil {
		t.Fatal(err)
	}
	var c cost
	var read atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = counted{response.Body, &read}
			}
			return response, err
		})
	})
	stop := peakOfHeap(&c.peak)
	begun, used := time.Now(), cpuTime(t)
	ask(config)
	c.took, c.cpu = time.Since(begun), cpuTime(t)-used
	stop()
	c.bytes = read.Load()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if c.requests, _, err = witness.Events(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

type counted struct {
	io.ReadCloser
	read *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// peakOfHeap samples the heap until it is stopped.
func peakOfHeap(peak *int64) (stop func()) {
	heap := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before := heap()
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			*peak = max(*peak, heap()-before)
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { close(ended); <-stopped }
}

// kinds counts the requests by verb and resource; a page of a list is a request.
func (c cost) kinds() map[string]int {
	counts := map[string]int{}
	for _, e := range c.requests {
		what := e.Resource
		if what == "" {
			what, _, _ = strings.Cut(e.URI, "?")
		}
		counts[e.Verb+" "+what]++
	}
	return counts
}

// most is how often the request was made that was made most often, of those with a verb.
func (c cost) most(verb string) (n int, what string) {
	counts := map[string]int{}
	for _, e := range c.requests {
		if e.Verb == verb {
			counts[e.URI]++
			if counts[e.URI] > n {
				n, what = counts[e.URI], e.URI
			}
		}
	}
	return n, what
}

// pages are the requests that asked for a part of a list.
func (c cost) pages() int {
	n := 0
	for _, e := range c.requests {
		if e.Verb == "list" && e.Query().Get("limit") != "" {
			n++
		}
	}
	return n
}

func (c cost) String() string {
	var lines []string
	for what, n := range c.kinds() {
		lines = append(lines, fmt.Sprintf("%4d %s", n, what))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s, %s of a CPU, %d requests, %d pages, %d KiB read, heap up by %d KiB\n%s", c.took.Round(time.Millisecond), c.cpu.Round(time.Millisecond), len(c.requests), c.pages(), c.bytes>>10, c.peak>>10, strings.Join(lines, "\n"))
}
