package placement_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
)

// smallPages makes a real API server hand out a list in pieces, without a cluster of 500 nodes.
type smallPages struct {
	corev1client.NodeInterface
	requests int
}

func (s *smallPages) List(ctx context.Context, options metav1.ListOptions) (*corev1.NodeList, error) {
	s.requests++
	options.Limit = 2
	return s.NodeInterface.List(ctx, options)
}

// TestNodesOfARealCluster reads nodes and looks at them as an API server, its controllers and its kubelets have left them.
func TestNodesOfARealCluster(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{
		{Name: "agents-1", Labels: map[string]string{"pool": "agents"}, Taints: []corev1.Taint{{Key: "pool", Value: "agents", Effect: corev1.TaintEffectNoSchedule}}},
		{Name: "cordoned", Unschedulable: true},
		{Name: "fresh", Arch: "arm64", NotReady: true},
		{Name: "mainframe", Arch: "s390x"},
		{Name: "web", Arch: "arm64"},
	}})
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	pages := &smallPages{NodeInterface: client.CoreV1().Nodes()}
	nodes, err := placement.Nodes(t.Context(), pages)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"agents-1", "cordoned", "fresh", "mainframe", "web"}; !slices.Equal(names(nodes), want) {
		t.Errorf("got %v, want %v", names(nodes), want)
	}
	if pages.requests != 3 {
		t.Errorf("read in %d requests, want 3", pages.requests)
	}

	survey := placement.Look(nodes, agents())
	if !slices.Equal(names(survey.Nodes), []string{"agents-1"}) {
		t.Errorf("Sandbox nodes: %v", names(survey.Nodes))
	}
	now, soon := placement.Schedulable(nodes, placement.Rules{}, agents())
	if !slices.Equal(names(now), []string{"agents-1", "mainframe", "web"}) || !slices.Equal(names(soon), []string{"fresh"}) {
		t.Errorf("schedulable: %v, soon %v", names(now), names(soon))
	}
	for _, excluded := range placement.Look(nodes, placement.Rules{}).Excluded {
		t.Logf("%s: %s", excluded.Node, excluded.Reason)
		if excluded.Transient != (excluded.Node == "fresh") {
			t.Errorf("%+v", excluded)
		}
	}
}
