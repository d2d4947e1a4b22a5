package placement_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
)

// A chooser makes things up, always the same ones for a seed.
type chooser struct{ *rand.Rand }

func chooserOf(seed uint64) chooser { return chooser{rand.New(rand.NewPCG(seed, seed))} }

// seedOf is fixed, so that a disagreement stays one until it is mended. Another can be tried by the environment.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("JR2_TEST_SEED")
	if text == "" {
		return 5
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

func (c chooser) sometimes(chance float64) bool { return c.Float64() < chance }

func (c chooser) pick(all ...string) string { return all[c.IntN(len(all))] }

// madeUpFleet are the nodes of fleet, each changed to what nobody has thought of. One stays without a kubelet.
func madeUpFleet(c chooser) []devcluster.Node {
	nodes := fleet()
	for i := range nodes {
		node := &nodes[i]
		node.Labels, node.Taints = map[string]string{}, nil
		if c.sometimes(0.9) {
			node.Labels["zone"] = c.pick("a", "b", "c")
		}
		if c.sometimes(0.5) {
			node.Labels["pool"] = c.pick("agents", "web")
		}
		if c.sometimes(0.7) {
			node.Labels["rank"] = strconv.Itoa(c.IntN(10))
		}
		node.Unschedulable = c.sometimes(0.1)
		for _, key := range []string{"gpu", "pool", "x", "node.cilium.io/agent-not-ready", "ToBeDeletedByClusterAutoscaler"} {
			if c.sometimes(0.12) {
				node.Taints = append(node.Taints, corev1.Taint{Key: key, Value: c.pick("", "1", "agents"), Effect: corev1.TaintEffect(c.pick("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"))})
			}
		}
		node.Allocatable = list(c.pick("cpu=750m memory=2Gi", "cpu=2 memory=4Gi", "cpu=3 memory=16Gi", "cpu=4 memory=8Gi", "cpu=8 memory=32Gi", "cpu=8 memory=32Gi", "cpu=3999m memory=8589934591"))
		more := func(chance float64, text string) {
			if c.sometimes(chance) {
				for name, quantity := range list(text) {
					node.Allocatable[name] = quantity
				}
			}
		}
		more(0.5, "ephemeral-storage="+c.pick("20Gi", "100Gi"))
		more(0.3, "pods="+c.pick("0", "1", "2", "3"))
		more(0.3, "example.com/gpu="+c.pick("1", "2"))
		more(0.2, "hugepages-2Mi="+c.pick("64Mi", "512Mi"))
	}
	return nodes
}

// become changes the cluster's nodes and returns when the scheduler has seen it: the mark of the last change is on a node, and a pod that wants it
// was bound.
func (s *scheduled) become(t *testing.T, number int, nodes []devcluster.Node) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	for _, node := range nodes {
		group.Go(func() error { return s.cluster.AddNode(ctx, node) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	mark := strconv.Itoa(number)
	err := s.cluster.AddNode(t.Context(), devcluster.Node{Name: "marker", Labels: map[string]string{"mark": mark}, Taints: []corev1.Taint{{Key: "marker", Effect: corev1.TaintEffectNoSchedule}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for try := 0; ; try++ {
		pod, err := s.said.ask(ctx, s.client, asks(fmt.Sprintf("mark-%s-%d", mark, try), "", selecting(map[string]string{"mark": mark}), tolerating(corev1.Toleration{Operator: "Exists"})))
		if err != nil {
			t.Fatal(err)
		}
		s.gone(t, pod)
		if pod.Spec.NodeName != "" {
			return
		}
	}
}

// nodesNow reads the nodes alone again: controllers taint one that has no kubelet in their own time.
func (s *scheduled) nodesNow(t *testing.T, facts *placement.Facts) {
	t.Helper()
	nodes, err := s.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	facts.Nodes = nodes.Items
}
