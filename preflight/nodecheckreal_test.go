package preflight_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// TestNodeChecksOnRealNodes runs the checks where their pods run: two nodes with kubelet and containerd, and a network between them.
func TestNodeChecksOnRealNodes(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}})
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	image, err := registry.PushBusybox(t.Context(), "base/busybox:1", devcluster.DefaultArch)
	if err != nil {
		devcluster.Missing(t, err.Error())
	}
	client := clientFor(t, cluster.Config())
	real, nodes := realNodes(t, cluster, client, registry, "agents-1", "sandboxes-1")
	checks := preflight.NodeChecks{Client: client.CoreV1(), Image: image}
	there := loadedModule(t)
	findings, err := checks.Modules(t.Context(), nodes, there, "jr2_no_such_module")
	must(t, err)
	if !slices.Equal(codes(findings), []string{"Node agents-1 kernel-module", "Node sandboxes-1 kernel-module"}) || strings.Contains(findings[0].Message, there) {
		t.Errorf("got %+v", findings)
	}
	ports := func() []preflight.Finding {
		t.Helper()
		findings, err := checks.Ports(t.Context(), nodes[:1], nodes[1:], preflight.DefaultMountPort)
		must(t, err)
		return findings
	}
	if findings := ports(); findings != nil { // nobody listens, which the node says
		t.Errorf("got %+v", findings)
	}
	listen(t, client, image, nodes[1].Name)
	if findings := ports(); findings != nil {
		t.Errorf("got %+v", findings)
	}
	must(t, real[1].Unplug(t.Context()))
	findings = ports()
	if !slices.Equal(codes(findings), []string{"Node agents-1 node-port"}) {
		t.Fatalf("got %+v", findings)
	}
	t.Log(findings[0].Message)
}

// realNodes start beside each other.
func realNodes(t *testing.T, cluster *devcluster.Cluster, client kubernetes.Interface, registry *devcluster.Registry, names ...string) ([]*devcluster.RealNode, []corev1.Node) {
	t.Helper()
	real, nodes := make([]*devcluster.RealNode, len(names)), make([]corev1.Node, len(names))
	var group errgroup.Group
	for i, name := range names {
		group.Go(func() (err error) {
			real[i], err = cluster.StartRealNode(t.Context(), devcluster.RealNodeOptions{Name: name, Registries: []*devcluster.Registry{registry},
				Taints: []corev1.Taint{{Key: "pool", Value: name, Effect: corev1.TaintEffectNoSchedule}}})
			return err
		})
	}
	err := group.Wait()
	if errors.Is(err, devcluster.ErrNoRealNode) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
	for i, name := range names {
		node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		nodes[i] = *node
	}
	return real, nodes
}

// listen has somebody listen on the port of the mount.
func listen(t *testing.T, client kubernetes.Interface, image, node string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "listens"}, Spec: corev1.PodSpec{NodeName: node, HostNetwork: true, Containers: []corev1.Container{{
		Name: "main", Image: image, Command: []string{"busybox", "nc", "-ll", "-p", "20490", "-e", "true"}}}}}
	_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "somebody listens", func() bool {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "listens", metav1.GetOptions{})
		must(t, err)
		return pod.Status.Phase == corev1.PodRunning
	})
}
