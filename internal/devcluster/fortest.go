package devcluster

import (
	"sync/atomic"
	"testing"
)

// ForTest starts a cluster for a test and closes it when the test ends. The test fails where it does not start, or where
// a component ended before the test did.
func ForTest(t testing.TB, options Options) *Cluster {
	t.Helper()
	if options.Log == nil {
		var over atomic.Bool
		t.Cleanup(func() { over.Store(true) })
		options.Log = func(line string) {
			// A test that has ended can't log.
			if !over.Load() {
				t.Log(line)
			}
		}
	}
	cluster, err := Start(t.Context(), options)
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Errorf("the cluster of this test: %v", err)
		}
	})
	return cluster
}
