package preflight

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A MountCheck asks what a mount of Sandboxes' folders over NFS needs of a cluster.
type MountCheck struct {
	// Agents are the nodes of agents, Sandboxes those of Sandboxes. With one pool for both they are the same.
	Agents, Sandboxes []corev1.Node
	// Port on Sandbox nodes; DefaultMountPort when 0.
	Port int32
	// EachNode asks every node. Otherwise one of each pool is asked, which is enough where all nodes of a pool are alike.
	EachNode bool
}

// Mount makes the three checks of the source document's "Check the cluster": the cluster lets privileged pods in; Sandbox nodes have the kernel
// module nfsd, and agents' nodes nfsd and nfsv4; agents' nodes reach Sandbox nodes on the port. If any of them finds something, leave the mount off:
// Sandboxes then keep using the workspace volume. Where privileged pods are blocked, modules can't be loaded and are not asked for.
func (c NodeChecks) Mount(ctx context.Context, check MountCheck) ([]Finding, error) {
	agents, sandboxes := check.Agents, check.Sandboxes
	if !check.EachNode {
		agents, sandboxes = one(agents), one(sandboxes)
	}
	findings, err := c.checking(ctx, func(ctx context.Context, run *nodeChecking) ([]Finding, error) {
		findings, err := PrivilegedPods(ctx, run.pods, run.namespace)
		if err != nil {
			return findings, err
		}
		if len(findings) == 0 {
			findings, err = run.mountModules(ctx, agents, sandboxes)
			if err != nil {
				return findings, err
			}
		}
		more, err := run.ports(ctx, agents, sandboxes, cmp.Or(check.Port, DefaultMountPort))
		return append(findings, more...), err
	})
	for i := range findings {
		if findings[i].Severity == Warn {
			findings[i].Message += "; until then leave the mount off, and Sandboxes keep using the workspace volume"
		}
	}
	return findings, err
}

// mountModules asks a node of both pools once.
func (r *nodeChecking) mountModules(ctx context.Context, agents, sandboxes []corev1.Node) ([]Finding, error) {
	findings, err := r.modules(ctx, agents, []string{"nfsd", "nfsv4"})
	if err != nil {
		return findings, err
	}
	others := slices.DeleteFunc(slices.Clone(sandboxes), func(node corev1.Node) bool {
		return slices.ContainsFunc(agents, func(agent corev1.Node) bool { return agent.Name == node.Name })
	})
	more, err := r.modules(ctx, others, []string{"nfsd"})
	return append(findings, more...), err
}

// one is the first node that is ready, else the first.
func one(nodes []corev1.Node) []corev1.Node {
	for i := range nodes {
		for _, condition := range nodes[i].Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nodes[i : i+1]
			}
		}
	}
	return nodes[:min(1, len(nodes))]
}
