package jr2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/assembly"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// assembly publishes the Instance's code and looks at what is current then.
func (c *converge) assembly(ctx context.Context) error {
	built, err := assembly.Build(c.inst, c.contextDigests())
	if err != nil {
		return err
	}
	publisher := c.publisher()
	previous, found, err := publisher.Current(ctx)
	if err != nil && !errors.Is(err, assembly.ErrInvalid) {
		return fmt.Errorf("assembly: %w", unowned(err))
	}
	publish := func(why error) error {
		if why != nil {
			c.tell(Noted{Message: "the stored Assembly is damaged and is published again: " + why.Error()})
		}
		c.tell(AssemblyPublishing{Hash: built.Hash, Previous: previous})
		c.result.Changed++
		return publisher.Publish(ctx, built)
	}
	if !found || previous != built.Hash || c.opts.Force {
		if err := publish(err); err != nil {
			return fmt.Errorf("assembly %s: %w", built.Hash, unowned(err))
		}
	}
	workflows, err := publisher.WaitCurrent(ctx, built.Hash)
	if errors.Is(err, assembly.ErrInvalid) {
		if err := publish(err); err != nil {
			return fmt.Errorf("assembly %s: %w", built.Hash, unowned(err))
		}
		workflows, err = publisher.WaitCurrent(ctx, built.Hash)
	}
	if err != nil {
		return fmt.Errorf("assembly %s: %w", built.Hash, err)
	}
	c.result.Assembly = built.Hash
	c.tell(AssemblyCurrent{Hash: built.Hash, Workflows: workflows})
	return nil
}

func (c *converge) publisher() Publisher {
	if c.opts.Publisher != nil {
		return c.opts.Publisher
	}
	publisher := assembly.Cluster(c.cluster.client, c.cluster.namespace, c.labels())
	publisher.Adopt = c.opts.Adopt
	return publisher
}

// unowned gives a ConfigMap of somebody else, on which a publisher came, the form that all such objects have.
func unowned(err error) error {
	if foreign := (*assembly.ForeignError)(nil); errors.As(err, &foreign) {
		ref := apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: foreign.Namespace, Name: foreign.Name}
		return &apply.UnownedError{Ref: ref, Managers: foreign.Managers}
	}
	return err
}

// contextDigests gives the digests that the images were planned with, as Workspaces name their contexts.
func (c *converge) contextDigests() map[string]string {
	digests := map[string]string{}
	for _, found := range c.inst.ImageContexts() {
		digests[found.Key] = c.digests[found.Dir]
		if found.Default {
			digests[c.inst.DefaultImage] = c.digests[found.Dir]
		}
	}
	return digests
}

// labels are those of everything that an Instance has in its namespace.
func (c *converge) labels() map[string]string {
	return map[string]string{names.LabelInstance: c.inst.Name, names.LabelManagedBy: names.ManagedBy}
}

// finish tells what lives on from before this converge and closes it.
func (c *converge) finish(ctx context.Context) error {
	err := c.cluster.kindless(ctx, c.olderWorkspaces(ctx))
	if err != nil && !errors.As(err, new(*NoKindsError)) { // that was told when the operator was looked at
		c.tell(Noted{Message: "live workspaces could not be listed: " + err.Error()})
	}
	if bound := len(c.inst.BoundRepos()); bound > 0 && c.inst.ComposesSandbox() {
		c.tell(ReposBound{Count: bound})
	}
	c.tell(Converged{Changed: c.result.Changed})
	return nil
}

// olderWorkspaces counts live Sandboxes whose image is not one of this converge. They keep it: a live Sandbox is never re-imaged.
func (c *converge) olderWorkspaces(ctx context.Context) error {
	if !c.inst.ComposesSandbox() {
		return nil
	}
	client, err := dynamic.NewForConfig(c.cluster.config)
	if err != nil {
		return err
	}
	sandboxes := client.Resource(v1alpha1.GroupVersion().WithResource("sandboxes")).Namespace(c.cluster.namespace)
	list, err := sandboxes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	current := []string{c.record.Harness}
	for _, ref := range c.record.Sandbox {
		current = append(current, ref)
	}
	older := map[string]int{}
	for _, sandbox := range list.Items {
		image, _, _ := unstructured.NestedString(sandbox.Object, "spec", "image")
		if image != "" && !slices.Contains(current, image) {
			older[image]++
		}
	}
	for _, image := range slices.Sorted(maps.Keys(older)) {
		c.tell(WorkspacesOnOlderImages{Image: image, Count: older[image]})
	}
	return nil
}
