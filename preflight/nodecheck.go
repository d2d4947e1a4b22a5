package preflight

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Stable codes of the findings of NodeChecks.
const (
	// CodePrivilegedPods says that the cluster lets no privileged pod in.
	CodePrivilegedPods = "privileged-pods"
	// CodeKernelModule says that a module does not load on a node.
	CodeKernelModule = "kernel-module"
	// CodeNodePort says that one node can't reach a TCP port of another.
	CodeNodePort = "node-port"
	// CodeNodeUnchecked is a Note: a node could not be asked.
	CodeNodeUnchecked = "node-unchecked"
)

// DefaultCheckImage is an image whose shell runs the checks.
const DefaultCheckImage = "docker.io/library/busybox:1.37"

// Defaults of NodeChecks and of MountCheck.
const (
	DefaultCheckTimeout  = 2 * time.Minute
	DefaultCheckParallel = 8
	// DefaultMountPort is where a mount of Sandboxes' folders is served (source: seed, "Check the cluster").
	DefaultMountPort = int32(20490)
)

// connectSeconds is how long a connection may take before its silence counts as a firewall's (source: seed, "Check the cluster").
const connectSeconds = 3

// NodeChecks ask nodes what only a program on them can tell, by pods that live for seconds. Unlike everything else in this package they write:
// such pods and, where Namespace is empty, a namespace of their own. Both are removed before a check returns, also when its context ends; what
// a check that was killed left behind does nothing, since each pod has a deadline, and is removed by the next.
//
// Findings are Warnings, and Notes where a node could not be asked, with the cluster's own words. An error is what kept a check from looking at
// all; findings until then come with it, and so does what could not be removed.
type NodeChecks struct {
	// Client may create, list, watch and delete pods in Namespace or, where that is empty, such pods and namespaces. Required. client-go's
	// CoreV1 is one.
	Client NodeCheckClient
	// Namespace in which the pods run. It must be at the privileged Pod Security level, since they use the host's network and modules are loaded by
	// privileged ones. When empty, one is made and removed again.
	Namespace string
	// Image has a shell, nc and chroot, all three as busybox has them; DefaultCheckImage when empty.
	Image string
	// PullSecrets are names of Secrets of Namespace by which Image is pulled.
	PullSecrets []string
	// Timeout bounds each pod, with the pull of its image; DefaultCheckTimeout when 0.
	Timeout time.Duration
	// Parallel bounds how many pods there are at once; DefaultCheckParallel when 0.
	Parallel int
}

// NodeCheckClient is what NodeChecks need of a client.
type NodeCheckClient interface {
	corev1client.PodsGetter
	corev1client.NamespacesGetter
}

// Privileged asks by a dry run whether the cluster lets a privileged pod in. Nothing runs.
func (c NodeChecks) Privileged(ctx context.Context) ([]Finding, error) {
	return c.checking(ctx, func(ctx context.Context, run *nodeChecking) ([]Finding, error) {
		return PrivilegedPods(ctx, run.pods, run.namespace)
	})
}

// Modules loads kernel modules on each node, as modprobe does: one that is there already stays as it is. A name that is none is an error.
func (c NodeChecks) Modules(ctx context.Context, nodes []corev1.Node, modules ...string) ([]Finding, error) {
	for _, module := range modules {
		if !moduleName.MatchString(module) {
			return nil, fmt.Errorf("%q is no name of a kernel module", module)
		}
	}
	if len(modules) == 0 || len(nodes) == 0 {
		return nil, nil
	}
	return c.checking(ctx, func(ctx context.Context, run *nodeChecking) ([]Finding, error) {
		return run.modules(ctx, nodes, modules)
	})
}

// Ports connects from each node of one list to a TCP port of each of the other, by its internal address. A connection means that the path is
// open, and so does a refusal: nobody has to listen yet. Silence means that a firewall blocks it. A firewall that refuses in the node's place can't
// be told from a node that does.
func (c NodeChecks) Ports(ctx context.Context, from, to []corev1.Node, port int32) ([]Finding, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%d is no TCP port", port)
	}
	if len(from) == 0 || len(to) == 0 {
		return nil, nil
	}
	return c.checking(ctx, func(ctx context.Context, run *nodeChecking) ([]Finding, error) {
		return run.ports(ctx, from, to, port)
	})
}

// checking opens a place for pods and closes it, whatever happens between.
func (c NodeChecks) checking(ctx context.Context, check func(context.Context, *nodeChecking) ([]Finding, error)) ([]Finding, error) {
	run, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	findings, err := check(ctx, run)
	return findings, run.close(ctx, err)
}

func unchecked(node, format string, args ...any) Finding {
	return Finding{Severity: Note, Code: CodeNodeUnchecked, Object: "Node " + node, Message: fmt.Sprintf("node %s was not asked: ", node) + fmt.Sprintf(format, args...)}
}
