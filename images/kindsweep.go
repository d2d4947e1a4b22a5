package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A NodeSweeping is what was swept on one node of a kind cluster.
type NodeSweeping struct {
	Node string `json:"node"`
	Sweeping
}

// String is one line.
func (s NodeSweeping) String() string { return "node " + s.Node + ": " + s.Sweeping.String() }

// SweepKind sweeps every node of a kind cluster as Sweep does a Store. A node that is down, or that cannot be swept, stops no other; the joined
// errors name it and come with what was done on the others.
//
// Roots must be those of that very cluster: where the nodes are not those of Kind.Machines nothing is swept, with a *StrangeNodeError.
func SweepKind(ctx context.Context, k *Kind, roots *Roots, opts SweepOptions) ([]NodeSweeping, error) {
	nodes, err := k.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if k.Machines != nil {
		if err := k.known(ctx, nodes); err != nil {
			return nil, err
		}
	}
	var out []NodeSweeping
	var errs []error
	for _, node := range nodes {
		if err := node.Down(); err != nil {
			errs = append(errs, err)
			continue
		}
		done, err := Sweep(ctx, node, roots, opts)
		out = append(out, NodeSweeping{Node: node.name, Sweeping: *done})
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", node.name, err))
		}
	}
	return out, errors.Join(errs...)
}

// known compares the nodes that run with what the cluster says of its own. What cannot be read is not the same.
func (k *Kind) known(ctx context.Context, nodes []*KindNode) error {
	for _, node := range nodes {
		if node.Down() != nil {
			continue
		}
		strange := &StrangeNodeError{Cluster: k.Cluster, Node: node.name}
		var has bool
		if strange.There, has = k.Machines[node.name]; !has {
			return strange
		}
		if strange.There == "" {
			continue
		}
		var id strings.Builder
		if err := node.run(ctx, nil, &id, "cat", "/etc/machine-id"); err != nil { // where the kubelet has it from
			return fmt.Errorf("node %s: which machine it is cannot be read, so nothing was swept on nodes: %w", node.name, err)
		}
		if strange.Here = strings.TrimSpace(id.String()); strange.Here != strange.There {
			return strange
		}
	}
	return nil
}

// Built implements Store. An image is what has one configuration, which is what the kubelet names it by: an import leaves it under a name, under
// the digest of a list of its own and under its id. Sizes are those of its layers as they were brought; unpacked they take more.
//
// A node of which no image at all can be read is an error: it holds those that Kubernetes itself is made of.
func (n *KindNode) Built(ctx context.Context) ([]Stored, error) {
	all, err := n.images(ctx, "")
	if err != nil {
		return nil, err
	}
	n.built = nil
	readable := len(all) == 0
	for _, image := range all {
		readable = readable || len(image.images) > 0
		if !image.ours() {
			continue
		}
		same := slices.IndexFunc(n.built, func(other *nodeImage) bool { return other.id() == image.id() })
		if same < 0 {
			n.built = append(n.built, image)
			continue
		}
		n.built[same].names = append(n.built[same].names, image.names...)
		n.built[same].bytes = max(n.built[same].bytes, image.bytes)
	}
	if !readable {
		return nil, fmt.Errorf("containerd lists %d images and none of them can be read", len(all))
	}
	var out []Stored
	for _, image := range n.built {
		stored := Stored{ID: image.images[0].config, Tags: image.tags(), Bytes: image.bytes}
		for _, held := range image.images {
			if name := held.labels[LabelInstance]; name != "" {
				stored.Instances = append(stored.Instances, name)
			}
		}
		for _, name := range image.names {
			if strings.Contains(name, "@") {
				stored.Digests = append(stored.Digests, name)
			}
		}
		out = append(out, stored)
	}
	return out, nil
}

// Remove implements Store, of what Built listed: a name that was given since is left alone. With the last tag go the names that the import and
// the kubelet's interface gave, and so the image. What is still there after that is an error.
func (n *KindNode) Remove(ctx context.Context, ref string) error {
	at := slices.IndexFunc(n.built, func(image *nodeImage) bool {
		return image.images[0].config == ref || slices.Contains(image.names, ref)
	})
	if at < 0 {
		return nil
	}
	image := n.built[at]
	names := image.names
	if tags := image.tags(); len(tags) > 1 && slices.Contains(tags, ref) {
		names = []string{ref}
	}
	if _, err := n.ctr(ctx, append([]string{"images", "rm", "--sync"}, names...)...); err != nil { // names that are gone are none to it
		return err
	}
	left, err := n.ctr(ctx, "images", "ls", "-q")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(left) {
		if slices.Contains(names, name) {
			return fmt.Errorf("it was removed and is still listed as %s", name)
		}
	}
	image.names = slices.DeleteFunc(slices.Clone(image.names), func(name string) bool { return slices.Contains(names, name) })
	return nil
}

// ours says whether a converge built it.
func (h *nodeImage) ours() bool {
	return slices.ContainsFunc(h.images, func(image heldImage) bool { return image.labels[LabelKind] != "" })
}

// id tells images apart by their configurations.
func (h *nodeImage) id() string {
	var configs []string
	for _, image := range h.images {
		configs = append(configs, image.config)
	}
	slices.Sort(configs)
	return strings.Join(slices.Compact(configs), " ")
}

// tags are the names that somebody may know it by.
func (h *nodeImage) tags() []string {
	var tags []string
	for _, name := range h.names {
		if !strings.Contains(name, "@") && !strings.HasPrefix(name, "sha256:") {
			tags = append(tags, name)
		}
	}
	return tags
}
