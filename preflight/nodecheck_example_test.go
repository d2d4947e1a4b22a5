package preflight_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/preflight"
)

// The three checks before a mount of Sandboxes' folders is turned on. They run pods for some seconds, in a namespace that is made for them and
// removed again.
func ExampleNodeChecks_Mount() {
	var client kubernetes.Interface     // of the caller
	var agents, sandboxes []corev1.Node // of the two pools
	check := func(ctx context.Context) error {
		checks := preflight.NodeChecks{Client: client.CoreV1(), Image: "registry.example.com/mirror/busybox:1.37"}
		findings, err := checks.Mount(ctx, preflight.MountCheck{Agents: agents, Sandboxes: sandboxes})
		for _, finding := range findings {
			fmt.Println(finding.Severity, finding.Message)
		}
		return err
	}
	_ = check
}

func ExampleNodeChecks_Privileged() {
	var client kubernetes.Interface // of the caller
	check := func(ctx context.Context) ([]preflight.Finding, error) {
		return preflight.NodeChecks{Client: client.CoreV1()}.Privileged(ctx)
	}
	_ = check
}

// In a namespace that is there already nothing is written.
func ExamplePrivilegedPods() {
	var client kubernetes.Interface // of the caller
	check := func(ctx context.Context) ([]preflight.Finding, error) {
		return preflight.PrivilegedPods(ctx, client.CoreV1().Pods("mount"), "mount")
	}
	_ = check
}

func ExampleNodeChecks_Modules() {
	var client kubernetes.Interface // of the caller
	var nodes []corev1.Node
	check := func(ctx context.Context) ([]preflight.Finding, error) {
		return preflight.NodeChecks{Client: client.CoreV1(), Namespace: "mount"}.Modules(ctx, nodes, "nfsd")
	}
	_ = check
}

func ExampleNodeChecks_Ports() {
	var client kubernetes.Interface // of the caller
	var agents, sandboxes []corev1.Node
	check := func(ctx context.Context) ([]preflight.Finding, error) {
		return preflight.NodeChecks{Client: client.CoreV1()}.Ports(ctx, agents, sandboxes, preflight.DefaultMountPort)
	}
	_ = check
}
