package placement_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
)

func ExampleLook() {
	rules := placement.Rules{NodeSelector: map[string]string{"pool": "agents"}}
	survey := placement.Look([]corev1.Node{node("jr2-control-plane")}, rules)
	for _, excluded := range survey.Excluded {
		fmt.Printf("%s: %s\n", excluded.Node, excluded.Reason)
	}
	// Output: jr2-control-plane: lacks the label pool that sandbox.nodeSelector requires
}

func ExampleSchedulable() {
	nodes := []corev1.Node{node("worker"), node("fresh", "node.kubernetes.io/not-ready:NoSchedule"), cordoned(node("old"))}
	now, soon := placement.Schedulable(nodes)
	fmt.Println(names(now), names(soon))
	// Output: [worker] [fresh]
}

func ExampleTolerates() {
	tolerations := []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}}
	fmt.Println(placement.Tolerates(tolerations, corev1.Taint{Key: "pool", Value: "agents", Effect: corev1.TaintEffectNoSchedule}))
	// Output: true
}

func ExampleTooLarge() {
	nodes := []corev1.Node{sized("jr2-control-plane", "16Gi", "8")}
	demands := []placement.Demand{{Size: config.Size{Memory: 512 << 30, CPU: 64000}, Workflows: []string{"hold"}}}
	fmt.Println(placement.TooLarge(nodes, demands))
	// Output: [{{549755813888 64000} [hold]}]
}

func ExampleNodes() {
	var client kubernetes.Interface // of the caller
	look := func(ctx context.Context) error {
		nodes, err := placement.Nodes(ctx, client.CoreV1().Nodes())
		if err != nil {
			return err
		}
		fmt.Println(len(nodes), "nodes")
		return nil
	}
	_ = look
}
