package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// register makes the Node before its kubelet does, with the labels and the taints that were asked for and with the addresses: a kubelet
// with an external cloud provider keeps those that it finds.
func (n *RealNode) register(ctx context.Context) error {
	nodes := n.cluster.client.CoreV1().Nodes()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.options.Labels},
		Spec:       corev1.NodeSpec{Taints: n.options.Taints},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.Address},
			// Where the API server, which is not in the nodes' network, reaches the kubelet.
			{Type: corev1.NodeExternalIP, Address: loopback},
			{Type: corev1.NodeHostName, Address: n.Name},
		}},
	}
	_, err := nodes.Create(ctx, node, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, played := have.Annotations[simulated]; played {
		return errors.New("a simulated node has the name")
	}
	taints := slices.DeleteFunc(have.Spec.Taints, func(t corev1.Taint) bool { return !ofController(t) })
	have.Labels, have.Spec.Taints = node.Labels, append(taints, node.Spec.Taints...)
	if have, err = nodes.Update(ctx, have, metav1.UpdateOptions{}); err != nil {
		return err
	}
	have.Status.Addresses = node.Status.Addresses
	_, err = nodes.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}

// readySince is nil when the kubelet has said, after the time, that the node is Ready, and pods may land.
func (n *RealNode) readySince(ctx context.Context, since time.Time) error {
	node, err := n.cluster.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return errors.New("its kubelet has not reported")
	}
	if c := node.Status.Conditions[i]; c.Status != corev1.ConditionTrue {
		return fmt.Errorf("it is not Ready: %s", c.Message)
	}
	// Times have a step of a second.
	if node.Status.Conditions[i].LastHeartbeatTime.Before(&metav1.Time{Time: since.Truncate(time.Second)}) {
		return errors.New("its kubelet has not reported since it started")
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return ofController(t) && t.Key != corev1.TaintNodeUnschedulable }) {
		return errors.New("its Ready condition has not reached its taints")
	}
	return nil
}

// loadPause loads the image that holds a pod's namespaces.
func (n *RealNode) loadPause(ctx context.Context) error {
	image, err := BusyboxImage(runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRealNode, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	// The shell takes care of orphans where a pod shares its process namespace.
	config.Config.Cmd = []string{"/bin/sh", "-c", "while :; do sleep 3600; done"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	return n.loadImage(ctx, pauseImage, image)
}

func (n *RealNode) loadImage(ctx context.Context, ref string, image v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	shell, args, err := n.command(inside+"/containerd/ctr", "--namespace", "k8s.io", "images", "import", "-")
	if err != nil {
		return err
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(tarball.Write(tag, image, writer)) }()
	cmd := exec.CommandContext(ctx, shell, args...)
	cmd.Stdin = reader
	err = run(cmd, "load "+ref)
	reader.Close() //nolint:errcheck // it never fails
	return err
}
