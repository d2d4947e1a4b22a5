package preflight_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/preflight"
)

// Two nodes, and one of them is large enough and full.
func ExampleSandboxes() {
	box := placement.SandboxPod("team-a", placement.Share{CPU: 2000, Memory: 6 << 30, Disk: 10 << 30}, placement.Rules{})
	found := preflight.Sandboxes(context.Background(),
		[]preflight.SandboxShape{{Of: "Sandboxes of 6Gi memory and 2 CPU (workflow review)", Pods: []*corev1.Pod{box}}},
		preflight.SandboxFacts{Facts: placement.Facts{
			Nodes: []corev1.Node{with(node("small"), "memory=4Gi"), with(node("large"), "memory=16Gi")},
			Pods:  []corev1.Pod{running("team-b", "build", "large", "memory=12Gi")},
		}})
	for _, f := range found {
		fmt.Println(f.Severity, f.Code)
		fmt.Println(f.Message)
	}
	// Output:
	// warn no-room
	// Sandboxes of 6Gi memory and 2 CPU (workflow review) find no room now, and would wait: the nodes (small: is too small: memory 4Gi allocatable of 6Gi wanted; large: has no room: memory 4Gi free of 6Gi wanted) — add a node, or wait until others go
}
