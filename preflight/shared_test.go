package preflight_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"jr2.dev/jr2/internal/devcluster"
)

// shared is a real API server without nodes, for tests that have namespaces of their own. It is started by the first that asks for it.
var shared struct {
	sync.Mutex
	cluster *devcluster.Cluster
	err     error
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		code := m.Run()
		if shared.cluster == nil {
			return code
		}
		if err := shared.cluster.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "the cluster of the tests:", err)
			return 1
		}
		return code
	}())
}

func sharedCluster(t *testing.T) *devcluster.Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = devcluster.Start(context.Background(), devcluster.Options{Nodes: []devcluster.Node{}, Audit: true, Users: []devcluster.User{{
			Name:  "ana",
			Rules: map[string][]rbacv1.PolicyRule{"few-rights": {{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}},
		}}})
	}
	if shared.err != nil {
		t.Fatalf("start a cluster: %v", shared.err)
	}
	return shared.cluster
}
