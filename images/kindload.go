package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// A KindLoadError says on which nodes of a kind cluster an image is not, and on which it is.
type KindLoadError struct {
	Cluster, Ref string
	// Loaded are the nodes that have the image.
	Loaded []string
	// Failed are the reasons of the others, by node. One that is down has a *NodeDownError.
	Failed map[string]error
}

func (e *KindLoadError) Error() string {
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(e.Failed)) {
		reason := e.Failed[node].Error()
		if down := (*NodeDownError)(nil); !errors.As(e.Failed[node], &down) { // which names it
			reason = "node " + node + ": " + reason
		}
		parts = append(parts, reason)
	}
	where := "no node has it"
	if len(e.Loaded) > 0 {
		where = "it is on " + strings.Join(e.Loaded, ", ")
	}
	return fmt.Sprintf("image %s is not on every node of the kind cluster %q: %s; %s", e.Ref, e.Cluster, strings.Join(parts, "; "), where)
}

// Unwrap gives the reasons of all nodes.
func (e *KindLoadError) Unwrap() []error {
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(e.Failed)) {
		errs = append(errs, e.Failed[node])
	}
	return errs
}

// Have asks every node for img. It is there when each node has all of it, made for the platform and labelled as a Sandbox Image of the
// instance, with one USER. When all nodes that answer have it and others do not answer, those are named by a *KindLoadError: no build helps.
func (k *Kind) Have(ctx context.Context, img Image, instance string, platformSet []string) (Delivered, bool, error) {
	name, err := nodeName(img.Ref)
	if err != nil {
		return Delivered{}, false, err
	}
	nodes, err := k.Nodes(ctx)
	if err != nil {
		return Delivered{}, false, err
	}
	var lock sync.Mutex
	var got *Delivered
	missing := false
	failed := k.each(nodes, img.Ref, func(n *KindNode) error {
		held, err := n.held(ctx, name)
		if err != nil {
			return err
		}
		one := held.found(img.Ref)
		user, differ := one.user()
		lock.Lock()
		defer lock.Unlock()
		if !held.whole() || !one.labelled(instance) || one.check(platformSet) != nil || differ != nil || got != nil && got.User != user {
			missing = true
		}
		got = &Delivered{Ref: img.Ref, Digest: one.digest, User: user}
		return nil
	})
	if ctx.Err() != nil {
		return Delivered{}, false, context.Cause(ctx)
	}
	switch {
	case missing || got == nil:
		return Delivered{}, false, nil
	case failed != nil:
		return Delivered{}, false, failed
	}
	return *got, true, nil
}

// MayPush asks, before anything is built for it, whether there is a node that can take img. Where some can't, the others are loaded all the
// same; where none can it is a *KindLoadError.
func (k *Kind) MayPush(ctx context.Context, img Image) error {
	nodes, err := k.Nodes(ctx)
	if err != nil {
		return err
	}
	failed := k.each(nodes, img.Ref, func(n *KindNode) error {
		_, err := n.ctr(ctx, "version")
		return err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil && len(failed.Loaded) == 0:
		return failed
	}
	return nil
}

// Send builds with b, which must be an Archiver, loads the image into every node that has not got that very image, and reads it back from
// each. A node that fails, or is down, stops no other: a *KindLoadError names those that have the image and those that have not.
func (k *Kind) Send(ctx context.Context, b Builder, req BuildRequest) (Delivered, error) {
	archiver, ok := b.(Archiver)
	if !ok {
		return Delivered{}, fmt.Errorf("the kind cluster %q takes images as archives, and the builder can only push them — set `registry` in jr2.config.ts", k.Cluster)
	}
	name, err := nodeName(req.Ref)
	if err != nil {
		return Delivered{}, err
	}
	bases := k.Bases
	if bases == nil {
		bases = &Registry{}
	}
	req.Keychain, req.Transport = bases.keychain(), bases.transport()
	file, err := os.CreateTemp("", "jr2-image-*.tar")
	if err != nil {
		return Delivered{}, err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // what stays is in the system's folder for that
	defer file.Close()           //nolint:errcheck // it is not kept
	if err := archiver.Archive(ctx, req, file); err != nil {
		return Delivered{}, err
	}
	image, err := readArchive(file)
	if err != nil {
		return Delivered{}, err
	}
	built := &found{ref: req.Ref, images: []foundImage{image.foundImage}}
	if err := built.check(req.Platforms); err != nil {
		return Delivered{}, err
	}
	digest, err := k.load(ctx, req, name, file, image)
	return Delivered{Ref: req.Ref, Digest: digest, User: image.user}, err
}

// load brings an archive to all nodes and says under which digest they hold it.
func (k *Kind) load(ctx context.Context, req BuildRequest, name string, archive *os.File, image archivedImage) (digest string, err error) {
	nodes, err := k.Nodes(ctx)
	if err != nil {
		return "", err
	}
	size, err := archive.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	var lock sync.Mutex
	failed := k.each(nodes, req.Ref, func(n *KindNode) error {
		held, err := n.held(ctx, name)
		if err == nil && !held.is(image) {
			k.tell(&lock, Loading{Name: req.Name, Ref: req.Ref, Node: n.name})
			held, err = n.load(ctx, name, io.NewSectionReader(archive, 0, size), image)
		}
		if err == nil {
			lock.Lock()
			digest = held.digest
			lock.Unlock()
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case failed != nil:
		return "", failed
	}
	return digest, nil
}

func (k *Kind) tell(lock *sync.Mutex, e Event) {
	lock.Lock()
	defer lock.Unlock()
	if k.Progress != nil {
		k.Progress(e)
	}
}

// each does something on all nodes that run, at once, and says how it went where not all is well.
func (k *Kind) each(nodes []*KindNode, ref string, do func(*KindNode) error) *KindLoadError {
	outcome := &KindLoadError{Cluster: k.Cluster, Ref: ref, Failed: map[string]error{}}
	errs := make([]error, len(nodes))
	var wait sync.WaitGroup
	for i, node := range nodes {
		if errs[i] = node.Down(); errs[i] == nil {
			wait.Go(func() { errs[i] = do(node) })
		}
	}
	wait.Wait()
	for i, node := range nodes {
		if errs[i] == nil {
			outcome.Loaded = append(outcome.Loaded, node.name)
		} else {
			outcome.Failed[node.name] = errs[i]
		}
	}
	if len(outcome.Failed) == 0 {
		return nil
	}
	return outcome
}

// held is what the node holds under a name, or nil.
func (n *KindNode) held(ctx context.Context, name string) (*nodeImage, error) {
	list, err := n.images(ctx, name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// load imports an archive and reads back what stands under the name then.
func (n *KindNode) load(ctx context.Context, name string, archive io.Reader, want archivedImage) (*nodeImage, error) {
	if err := nodeutils.LoadImageArchive(kindNode{KindNode: n, ctx: ctx}, archive); err != nil {
		return nil, err
	}
	held, err := n.held(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case held == nil:
		return nil, fmt.Errorf("the import ended well and left nothing under %s", name)
	case !held.is(want):
		return nil, fmt.Errorf("the import ended well and left %s under %s, which is not all of the image %s", held.digest, name, want.config)
	}
	return held, nil
}

// is says whether this is all of an image, and nothing else.
func (h *nodeImage) is(want archivedImage) bool {
	return h.whole() && len(h.images) == 1 && h.images[0].config == want.config && h.images[0].own == want.own
}

// whole says whether the node can run it without asking anybody.
func (h *nodeImage) whole() bool {
	if h == nil || len(h.images) == 0 {
		return false
	}
	for _, image := range h.images {
		if !image.whole {
			return false
		}
	}
	return true
}

// found is what the node holds, in the form that a registry's answer has. Nothing held is no images.
func (h *nodeImage) found(ref string) *found {
	if h == nil {
		return &found{ref: ref}
	}
	out := &found{ref: ref, digest: h.digest}
	for _, image := range h.images {
		out.images = append(out.images, image.foundImage)
	}
	return out
}
