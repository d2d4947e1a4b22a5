package devcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrNoRealNode is the cause where a real node can't run here: not Linux, not root, no cgroups, or something to build its runtime with
// is missing.
var ErrNoRealNode = errors.New("no real node here")

// errClosed is the error of what is asked of a node or a cluster after its Close.
var errClosed = errors.New("it is closed")

// DefaultRealNodeName is the name of a real node where RealNodeOptions give none.
const DefaultRealNodeName = "real-1"

// RealNodeOptions say what node to start. The zero value is a node that offers all of this machine.
type RealNodeOptions struct {
	// Name defaults to DefaultRealNodeName. Two nodes of a cluster need two names.
	Name string
	// Labels are added to those that the kubelet sets. Taints are there before the first pod can land.
	Labels map[string]string
	Taints []corev1.Taint
	// Allocatable is what pods may ask for: cpu, memory and pods. The rest of the machine is reserved. Default: all of it and
	// DefaultPods. More than the machine has is an error: the kubelet reports what it finds.
	Allocatable corev1.ResourceList
	// Registries are pulled from under the names that Registry.Host gives: with plain HTTP or with the registry's authority. See
	// RealNode.TrustRegistry for one that starts later.
	Registries []*Registry
	// Kubelet replaces fields of the KubeletConfiguration, by their names in its file; nil values remove them.
	Kubelet map[string]any
}

// A RealNode is a kubelet with containerd and runc: its pods run. It is like a machine of its own, in namespaces of this one: its own
// processes, mounts, network, host name and cgroups. Its kernel, memory and disk are this machine's.
//
// What works: what the kubelet does for a pod (pod-level resources, image volumes and probes among it), logs and exec through the API
// server, connections to pods and hostNetwork pods of all real nodes of the cluster, and to the API server under the address that
// pods are given (KUBERNETES_SERVICE_HOST). What does not: other Services (there is no kube-proxy), DNS, hostPort,
// NetworkPolicy, and the world outside: no route leads from a pod to this machine (but see Expose) or beyond.
type RealNode struct {
	// Name is the Node's. Address is its InternalIP; only real nodes of the same cluster can reach it.
	Name, Address string

	cluster *Cluster
	options RealNodeOptions
	index   int
	dir     *workdir
	bins    nodeBinaries
	cgroups cgroupTree
	spawner *spawner
	// kubeletPort is the kubelet's in the node, and on loopback, from where it is forwarded.
	kubeletPort int
	forwarder   net.Listener

	// starting is held by what starts processes, so that Close comes after it.
	starting sync.Mutex
	// mu guards what follows.
	mu sync.Mutex
	// machine is the first process of the node's namespaces: all others end with it.
	machine, containerd, kubelet *process
	listeners                    []net.Listener
	// ways lead from addresses in the node's network to addresses in this machine's.
	ways   map[string]string
	closed bool
}

// StartRealNode starts a node and returns when it is Ready. Where that can't work on this machine the error is an ErrNoRealNode.
// ctx bounds the start; the node lives until its Close or the cluster's. In a cluster with Options.Dir, a node of the same name
// starts again with the images and the pods that it had.
func (c *Cluster) StartRealNode(ctx context.Context, options RealNodeOptions) (*RealNode, error) {
	if err := CanRealNode(); err != nil {
		return nil, err
	}
	options.Name = cmp.Or(options.Name, DefaultRealNodeName)
	bins, err := ensureNodeBinaries(ctx, c.options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n, err := c.newRealNode(options, bins)
	if err == nil {
		if err = n.start(ctx); err != nil {
			err = errors.Join(err, n.close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("real node %s: %w", options.Name, err)
	}
	return n, nil
}

// start does everything but build and clean up.
func (n *RealNode) start(ctx context.Context) error {
	n.starting.Lock()
	defer n.starting.Unlock()
	if n.isClosed() {
		return errClosed
	}
	if err := n.forwardKubelet(); err != nil {
		return err
	}
	if err := n.writeFiles(); err != nil {
		return err
	}
	for _, registry := range n.options.Registries {
		if err := n.TrustRegistry(registry); err != nil {
			return err
		}
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	return n.powerOn(ctx)
}

// PowerOn starts a node that was powered off, and returns when it is Ready.
func (n *RealNode) PowerOn(ctx context.Context) error {
	n.starting.Lock()
	defer n.starting.Unlock()
	return n.powerOn(ctx)
}

func (n *RealNode) powerOn(ctx context.Context) error {
	if err := n.startMachine(ctx); err != nil {
		return err
	}
	if err := n.startContainerd(ctx); err != nil {
		return err
	}
	if err := n.loadPause(ctx); err != nil {
		return err
	}
	return n.startKubelet(ctx)
}

// PowerOff ends everything on the node at once, as a power cut would: nobody is told. Images, pods and their logs are there at the
// next PowerOn. The cluster notices after its grace period (see Options.NodeGrace).
func (n *RealNode) PowerOff() {
	n.mu.Lock()
	machine, listeners := n.machine, n.listeners
	parts := []*process{n.kubelet, n.containerd}
	n.machine, n.containerd, n.kubelet, n.listeners = nil, nil, nil, nil
	n.mu.Unlock()
	for _, listener := range listeners {
		listener.Close() //nolint:errcheck // nobody is left to be told
	}
	for _, part := range parts {
		n.cluster.end(part)
	}
	n.cluster.end(machine)
}

// KillKubelet ends the kubelet alone: pods run on, and nobody says how they are.
func (n *RealNode) KillKubelet() {
	n.mu.Lock()
	kubelet := n.kubelet
	n.kubelet = nil
	n.mu.Unlock()
	n.cluster.end(kubelet)
}

// StartKubelet starts the kubelet, after KillKubelet, and returns when the node is Ready.
func (n *RealNode) StartKubelet(ctx context.Context) error {
	n.starting.Lock()
	defer n.starting.Unlock()
	return n.startKubelet(ctx)
}

func (n *RealNode) startKubelet(ctx context.Context) error {
	kubelet, err := n.runInside(inside+"/kubelet/kubelet", n.kubeletArgs()...)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.kubelet = kubelet
	n.mu.Unlock()
	n.cluster.watch(kubelet)
	return n.waitReady(ctx)
}

// deleteTimeout bounds the removal of a node's object: a cluster that is being torn down may not answer any more.
const deleteTimeout = 10 * time.Second

// Close ends the node, removes it from the cluster and, unless the cluster has a Dir, removes its files.
func (n *RealNode) Close() error {
	if n.cluster.isClosed() {
		return n.close()
	}
	err := n.close()
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	deleted := n.cluster.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
	if deleted != nil && !apierrors.IsNotFound(deleted) {
		err = errors.Join(err, deleted)
	}
	return err
}

// close leaves the Node object where it is.
func (n *RealNode) close() error {
	n.starting.Lock()
	defer n.starting.Unlock()
	n.mu.Lock()
	closed := n.closed
	n.closed = true
	n.mu.Unlock()
	if closed {
		return nil
	}
	n.PowerOff()
	var err error
	if n.forwarder != nil {
		err = n.forwarder.Close()
	}
	n.spawner.close()
	n.cluster.forgetRealNode(n)
	return errors.Join(err, n.cgroups.remove(), n.dir.close())
}

func (n *RealNode) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// LoadImage gives the node an image under the name, which need not be one of a registry: "kind load" for this node.
func (n *RealNode) LoadImage(ctx context.Context, ref string, image v1.Image) error {
	return n.loadImage(ctx, ref, image)
}
