package images

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"
	"sigs.k8s.io/kind/pkg/cluster/constants"
)

// The labels by which kind marks the containers that are its nodes.
//
// Source: kind, pkg/cluster/internal/providers/docker/constants.go.
const (
	kindClusterLabel = "io.x-k8s.kind.cluster"
	kindRoleLabel    = "io.x-k8s.kind.role"
)

// Kind reaches the nodes of a kind cluster, which are containers in a Docker Engine. It is the Deliverer that loads images into them, as
// `kind load` does. Close it.
//
// The Docker Engine is asked through its API. kind's own provider calls the docker command with the environment of the process, which is not
// ours to change; what is done on a node is kind's own (nodeutils.LoadImageArchive).
type Kind struct {
	// Cluster is the cluster's name in kind: what follows "kind-" in the name of its kube context.
	Cluster string
	// Docker says where the Docker Engine is looked for, by the same fields as in Connect.
	Docker ConnectOptions
	// Bases says how the builder gets at the registries of base images: credentials, and the transport to fetch tokens with; nil means docker's
	// own configuration.
	Bases *Registry
	// Machines are what the cluster whose roots count says of its nodes: the machine id (nodeInfo.machineID) by name, empty where it says none.
	// Another machine may have a cluster of the same name: with Machines given, SweepKind looks first whether this one is meant.
	Machines map[string]string
	// Progress takes a Loading event for each node, one at a time; nil means none.
	Progress func(Event)

	lock  sync.Mutex
	api   *moby.Client
	place Place
}

// A KindNode is a node of a kind cluster. As a Store it holds the images in the node's containerd.
type KindNode struct {
	api            *moby.Client
	id, name, role string
	state          container.ContainerState
	built          []*nodeImage // of the last Built, without what was removed since
}

// A NoKindNodesError says that a Docker Engine runs no node of a kind cluster.
type NoKindNodesError struct {
	Cluster string
	Place   Place
}

func (e *NoKindNodesError) Error() string {
	return fmt.Sprintf("%s has no node of the kind cluster %q — name the Docker Engine that has (DOCKER_HOST or a docker context), or set `registry` in jr2.config.ts so that images are pushed", e.Place, e.Cluster)
}

// A NodeDownError says that a node of a kind cluster does not run.
type NodeDownError struct {
	Node string
	// State is the Docker Engine's word for it, such as "exited".
	State string
}

func (e *NodeDownError) Error() string {
	start := "start"
	if e.State == string(container.StatePaused) {
		start = "unpause"
	}
	return fmt.Sprintf("node %s is down (its container is %s) — start it: docker %s %s", e.Node, e.State, start, e.Node)
}

// A StrangeNodeError says that a node in the Docker Engine is none of the cluster that was asked what it needs.
type StrangeNodeError struct {
	Cluster, Node string
	// Here is the machine id of the node in the Docker Engine, There what the cluster says of the node of that name; empty when it has none.
	Here, There string
}

func (e *StrangeNodeError) Error() string {
	why := "the cluster has no node of that name"
	if e.There != "" {
		why = fmt.Sprintf("its machine id is %s, and the cluster's node has %s (a node that was just started tells a new one soon)", e.Here, e.There)
	}
	return fmt.Sprintf("node %s of the kind cluster %q in Docker belongs to another cluster than the context names: %s — nothing was swept on nodes", e.Node, e.Cluster, why)
}

// Nodes lists the nodes of the cluster by name, also those that are down. There being none is a *NoKindNodesError.
func (k *Kind) Nodes(ctx context.Context) ([]*KindNode, error) {
	api, err := k.connect(ctx)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeoutCause(ctx, k.Docker.timeout(), fmt.Errorf("no answer within %s", k.Docker.timeout()))
	defer cancel()
	list, err := api.ContainerList(within, moby.ContainerListOptions{All: true, Filters: moby.Filters{}.Add("label", kindClusterLabel+"="+k.Cluster)})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case within.Err() != nil:
		err = context.Cause(within)
	}
	if err != nil {
		return nil, fmt.Errorf("list the nodes of the kind cluster %q in %s: %w", k.Cluster, k.place, err)
	}
	var nodes []*KindNode
	for _, c := range list.Items {
		role := c.Labels[kindRoleLabel]
		if role != constants.ControlPlaneNodeRoleValue && role != constants.WorkerNodeRoleValue { // a load balancer runs no pods
			continue
		}
		node := &KindNode{api: api, id: c.ID, name: c.ID, role: role, state: c.State}
		if len(c.Names) > 0 {
			node.name = strings.TrimPrefix(c.Names[0], "/")
		}
		nodes = append(nodes, node)
	}
	if len(nodes) == 0 {
		return nil, &NoKindNodesError{Cluster: k.Cluster, Place: k.place}
	}
	slices.SortFunc(nodes, func(a, b *KindNode) int { return strings.Compare(a.name, b.name) })
	return nodes, nil
}

// connect finds the Docker Engine once.
func (k *Kind) connect(ctx context.Context) (*moby.Client, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.api != nil {
		return k.api, nil
	}
	api, place, err := k.Docker.dockerClient()
	if err != nil {
		return nil, fmt.Errorf("%s, which would run the nodes of the kind cluster %q, cannot be reached: %w", place, k.Cluster, err)
	}
	k.api, k.place = api, place
	return api, nil
}

// Close ends the connection.
func (k *Kind) Close() error {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.api == nil {
		return nil
	}
	api := k.api
	k.api = nil
	return api.Close()
}

// Name is the node's name, in Kubernetes as in Docker.
func (n *KindNode) Name() string { return n.name }

// Down says that the node does not run: a *NodeDownError; else nil.
func (n *KindNode) Down() error {
	if n.state == container.StateRunning {
		return nil
	}
	return &NodeDownError{Node: n.name, State: string(n.state)}
}
