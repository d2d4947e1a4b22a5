package devcluster

import (
	"errors"
	"os"
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

// RealNodeForTest starts a real node for a test. It ends with its cluster. Where none can be had, the test is Missing something.
func RealNodeForTest(t testing.TB, cluster *Cluster, options RealNodeOptions) *RealNode {
	t.Helper()
	node, err := cluster.StartRealNode(t.Context(), options)
	if errors.Is(err, ErrNoRealNode) {
		Missing(t, err.Error())
	}
	if err != nil {
		t.Fatalf("start a real node: %v", err)
	}
	return node
}

// Missing ends a test whose environment lacks something: it is skipped on a developer's machine and fails in CI, where a skip would be an
// untested claim.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}
