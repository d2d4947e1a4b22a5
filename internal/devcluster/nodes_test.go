package devcluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
)

func testNodes(t *testing.T, cluster *devcluster.Cluster, client kubernetes.Interface) {
	get := func(name string) *corev1.Node {
		t.Helper()
		node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	first := get(devcluster.DefaultNodeName)
	if got := first.Status.Allocatable.Memory().String(); got != "32Gi" || !isReady(first) || len(first.Spec.Taints) > 0 {
		t.Errorf("default node: memory %s, ready %t, taints %v", got, isReady(first), first.Spec.Taints)
	}
	if arm := get("arm"); arm.Status.NodeInfo.Architecture != "arm64" || arm.Labels[corev1.LabelArchStable] != "arm64" || arm.Labels["disk"] != "ssd" {
		t.Errorf("arm is %s, %v", arm.Status.NodeInfo.Architecture, arm.Labels)
	}
	if small := get("small"); small.Status.Allocatable.Memory().String() != "512Mi" || small.Status.Allocatable.Cpu().String() != "8" {
		t.Errorf("small has %v", small.Status.Allocatable)
	}
	if !get("cordoned").Spec.Unschedulable || get("tainted").Spec.Taints[0].Key != "gpu" || isReady(get("broken")) {
		t.Error("cordoned, tainted or broken is not what it says")
	}

	ctx := t.Context()
	if err := cluster.AddNode(ctx, devcluster.Node{Name: "more"}); err != nil {
		t.Fatal(err)
	}
	for _, notReady := range []bool{true, false} {
		node := devcluster.Node{Name: "more", NotReady: notReady, Arch: "s390x", Unschedulable: notReady}
		if err := cluster.UpdateNode(ctx, node); err != nil {
			t.Fatal(err)
		}
		if more := get("more"); isReady(more) == notReady || more.Status.NodeInfo.Architecture != "s390x" || more.Spec.Unschedulable != notReady {
			t.Errorf("more: ready %t, %s", isReady(more), more.Status.NodeInfo.Architecture)
		}
	}
	if err := cluster.RemoveNode(ctx, "more"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.UpdateNode(ctx, devcluster.Node{Name: "more"}); !apierrors.IsNotFound(err) {
		t.Errorf("updating a node that is gone: %v", err)
	}
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
