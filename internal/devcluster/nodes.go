package devcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/devcluster/build"
)

// simulated is the annotation by which kwok knows its nodes.
const simulated = "kwok.x-k8s.io/node"

func (c *Cluster) ensureNodes(ctx context.Context) error {
	nodes := c.options.Nodes
	if nodes == nil {
		nodes = []Node{{}}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, node := range nodes {
		group.Go(func() error { return c.AddNode(ctx, node) })
	}
	return group.Wait()
}

// AddNode adds the node, or changes the one of that name to what is said here, and waits until it is as asked.
func (c *Cluster) AddNode(ctx context.Context, node Node) error {
	want := node.object()
	err := pollWhile(ctx, c.components("kwok"), func(ctx context.Context) error {
		_, err := c.client.CoreV1().Nodes().Create(ctx, want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = c.changeNode(ctx, want)
		}
		return err
	})
	if err == nil {
		err = c.waitNode(ctx, want.Name, !node.NotReady)
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", want.Name, err)
	}
	return nil
}

// UpdateNode changes the node to what is said here: its labels, taints and all. Pods that run on it stay.
func (c *Cluster) UpdateNode(ctx context.Context, node Node) error {
	if _, err := c.client.CoreV1().Nodes().Get(ctx, node.name(), metav1.GetOptions{}); err != nil {
		return err
	}
	return c.AddNode(ctx, node)
}

// RemoveNode removes the node and waits until it is gone. Controllers remove its pods in their own time.
func (c *Cluster) RemoveNode(ctx context.Context, name string) error {
	nodes := c.client.CoreV1().Nodes()
	if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return pollWhile(ctx, c.components("kwok"), func(ctx context.Context) error {
		_, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is still there"))
	})
}

// changeNode keeps the taints that controllers have set: they follow the node's conditions.
func (c *Cluster) changeNode(ctx context.Context, want *corev1.Node) error {
	nodes := c.client.CoreV1().Nodes()
	have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	taints := slices.DeleteFunc(slices.Clone(have.Spec.Taints), func(t corev1.Taint) bool { return !ofController(t) })
	have.Labels, have.Annotations = want.Labels, want.Annotations
	have.Spec.Unschedulable = want.Spec.Unschedulable
	have.Spec.Taints = append(taints, want.Spec.Taints...)
	if have, err = nodes.Update(ctx, have, metav1.UpdateOptions{}); err != nil {
		return err
	}
	have.Status.Allocatable, have.Status.Capacity = want.Status.Allocatable, want.Status.Capacity
	have.Status.NodeInfo.Architecture = want.Status.NodeInfo.Architecture
	// Without conditions the node is one that kwok has yet to make Ready.
	if wantReady := want.Annotations[simulated] != ""; ready(have) != wantReady {
		have.Status.Conditions = want.Status.Conditions
	}
	_, err = nodes.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}

// waitNode waits until the node's condition is as asked and the controllers' taints have followed it.
func (c *Cluster) waitNode(ctx context.Context, name string, wantReady bool) error {
	return pollWhile(ctx, c.components("kwok"), func(ctx context.Context) error {
		node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready(node) != wantReady {
			return fmt.Errorf("its Ready condition is %t", ready(node))
		}
		cordoned := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		if cordoned != node.Spec.Unschedulable {
			return errors.New("its cordon has not reached its taints")
		}
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		if tainted == wantReady {
			return errors.New("its Ready condition has not reached its taints")
		}
		return nil
	})
}

// forgetLeases removes the leases by which the kwok of an earlier start held the nodes: the next one would wait for them
// to run out.
func (c *Cluster) forgetLeases(ctx context.Context) error {
	leases := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	err := leases.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("take over the nodes of the last start: %w", err)
	}
	return nil
}

func ofController(t corev1.Taint) bool {
	return slices.Contains([]string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable}, t.Key)
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (n Node) name() string { return cmp.Or(n.Name, DefaultNodeName) }

// object is the Node as its kubelet would register it.
func (n Node) object() *corev1.Node {
	arch := cmp.Or(n.Arch, DefaultArch)
	labels := map[string]string{
		corev1.LabelArchStable: arch,
		corev1.LabelOSStable:   "linux",
		corev1.LabelHostname:   n.name(),
	}
	maps.Copy(labels, n.Labels)
	annotations := map[string]string{}
	if !n.NotReady {
		annotations[simulated] = "fake"
	}
	maps.Copy(annotations, n.Annotations)
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(DefaultCPU),
		corev1.ResourceMemory: resource.MustParse(DefaultMemory),
		corev1.ResourcePods:   resource.MustParse(DefaultPods),
	}
	maps.Copy(allocatable, n.Allocatable)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name(), Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: n.Taints, Unschedulable: n.Unschedulable},
		Status: corev1.NodeStatus{
			Allocatable: allocatable,
			Capacity:    allocatable.DeepCopy(),
			// kwok reads these back as YAML: a value that looks like a number would break its template.
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            arch,
				OperatingSystem:         "linux",
				KernelVersion:           "6.1.0-devcluster",
				OSImage:                 "devcluster",
				ContainerRuntimeVersion: "kwok",
				KubeletVersion:          build.KubernetesVersion,
			},
		},
	}
	if n.NotReady {
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "the kubelet is not ready",
			LastHeartbeatTime: metav1.Time{Time: time.Now()}, LastTransitionTime: metav1.Time{Time: time.Now()},
		}}
	}
	return node
}
