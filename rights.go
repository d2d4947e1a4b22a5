package jr2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// rights is what a converge of this Instance has to be allowed.
type rights struct {
	needs  []preflight.Need
	grants []preflight.Grant
}

func (r *rights) need(what, group, resource, namespace, name string, verbs ...string) {
	r.needs = append(r.needs, preflight.Needs(what, group, resource, namespace, name, verbs...)...)
}

// setRights adds what the apply of a set needs: to look at each object, to make it and to change it; to keep the inventory; and to delete what
// left the set since the last converge. A namespace is often an admin's to make, so that one which is there need not be made.
func (c *converge) setRights(ctx context.Context, r *rights, set *apply.Set, opts apply.Options) error {
	inventory := apply.InventoryName(set.Name)
	r.need("the inventory of "+set.ID(), "", "configmaps", set.Namespace, inventory, "get", "create", "update")
	for _, o := range set.Objects {
		verbs := []string{"get", "patch", "create"}
		if o.GetKind() == "Namespace" {
			if live, err := c.sharedObject(ctx, o); err == nil && live != nil {
				verbs = verbs[:2]
			}
		}
		r.object(o, verbs...)
	}
	grants, err := preflight.Grants(ctx, c.cluster.client, set.Objects)
	if err != nil {
		return err
	}
	r.grants = append(r.grants, grants...)
	return c.pruneRights(ctx, r, set, opts)
}

// pruneRights adds what the prune of a set needs. An inventory that may not be read is the business of another right.
func (c *converge) pruneRights(ctx context.Context, r *rights, set *apply.Set, opts apply.Options) error {
	leaving, err := apply.Leaving(ctx, c.cluster.client, set, opts)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	gone := func(live *unstructured.Unstructured) bool {
		return live == nil || live.GetAnnotations()[apply.SetAnnotation] != set.ID()
	}
	seen := slices.Concat(leaving.Goes, leaving.Stays)
	if !c.unseen { // roles that are made by a record would give what its writer likes
		seen = append(seen, leaving.Unseen...)
	}
	for _, ref := range seen {
		plural, _ := meta.UnsafeGuessKindToResource(ref.GroupVersionKind())
		what := ref.String() + ", which is no longer asked for"
		r.need(what, ref.Group, plural.Resource, ref.Namespace, ref.Name, "get")
		if slices.Contains(leaving.Goes, ref) {
			r.need(what, ref.Group, plural.Resource, ref.Namespace, ref.Name, "delete")
			r.needs[len(r.needs)-1].Unless = preflight.Unless(c.cluster.client, plural, ref.Namespace, ref.Name, gone)
		}
	}
	return nil
}

func (r *rights) object(o *unstructured.Unstructured, verbs ...string) {
	ref := apply.RefOf(o)
	plural, _ := meta.UnsafeGuessKindToResource(ref.GroupVersionKind()) // right for every kind that is rendered
	r.need(ref.String(), ref.Group, plural.Resource, ref.Namespace, ref.Name, verbs...)
}

// rollout adds what waiting for a workload and looking at its pods needs.
func (r *rights) rollout(layer render.Layer) {
	what := "the rollout of the " + layer.Name
	r.need(what, "apps", strings.ToLower(layer.Kind)+"s", layer.Namespace, layer.Object, "list", "watch")
	r.need(what, "", "pods", layer.Namespace, "", "list")
}

// rightsNeeded lists what this converge has to be allowed, from the objects that it will apply. Their names and kinds depend on no value that is
// yet to be made, so stand-ins do.
func (c *converge) rightsNeeded(ctx context.Context) (*rights, error) {
	r, home := &rights{}, c.cluster.namespace
	r.need("the namespace", "", "namespaces", "", home, "get")
	r.need("the lock", "coordination.k8s.io", "leases", home, lockName, "get", "create", "update")
	r.need("the Instance's tokens", "", "secrets", home, names.InstanceSecret, "get", "create")
	if c.inst.Platforms == nil {
		r.need("the platforms to build for", "", "nodes", "", "", "list")
	}
	if c.opts.Publisher == nil {
		r.need("the Assembly", "", "configmaps", home, "", "get", "list", "create", "update")
	}
	c.modelRights(r)
	c.deployKeyRights(ctx, r)
	if err := c.sharedRights(ctx, r); err != nil {
		return nil, err
	}
	if err := c.operatorRights(ctx, r); err != nil {
		return nil, err
	}
	outline := c.sketch()
	outline.certificateRights(r)
	outline.record = c.kitRecord() // that of Sandbox Images is made later, and changes no name of an object
	set, opts, err := outline.instanceSet()
	if err != nil {
		return nil, err
	}
	r.need("the last converge", "apps", "deployments", home, names.Orchestrator, "get")
	for _, layer := range render.Layers(outline.input) {
		if layer.Namespace == home {
			r.rollout(layer)
		}
	}
	return r, c.setRights(ctx, r, set, opts)
}

// sharedRights adds what the objects need that belong to all: nothing but a look where an admin made them as they are asked for.
func (c *converge) sharedRights(ctx context.Context, r *rights) error {
	home, _, err := c.namespaceSet()
	if err != nil {
		return err
	}
	classes, _, err := c.prioritySet()
	if err != nil {
		return err
	}
	for _, o := range append(home.Objects, classes.Objects...) {
		verbs := []string{"get"}
		live, err := c.sharedObject(ctx, o)
		switch {
		case apierrors.IsForbidden(err): // the look itself is what is missing
			if c.unseen {
				verbs = append(verbs, "patch", "create")
			}
		case err != nil:
			return err
		case live == nil && o.GetKind() == "Namespace": // it is created, and never applied over another's
			verbs = append(verbs, "create")
		case live == nil:
			verbs = append(verbs, "patch", "create")
		case !apply.Holds(live, o):
			verbs = append(verbs, "patch")
		}
		r.object(o, verbs...)
	}
	return nil
}

// sharedObject reads a Namespace or a PriorityClass; nil when it is not there.
func (c *converge) sharedObject(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, given := range c.given {
		if apply.RefOf(given) == apply.RefOf(o) {
			return o, nil
		}
	}
	var live runtime.Object
	var err error
	switch o.GetKind() {
	case "Namespace":
		live, err = c.cluster.client.CoreV1().Namespaces().Get(ctx, o.GetName(), metav1.GetOptions{})
	default:
		var class *schedulingv1.PriorityClass
		class, err = c.cluster.client.SchedulingV1().PriorityClasses().Get(ctx, o.GetName(), metav1.GetOptions{})
		live = class
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", apply.RefOf(o), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	found := &unstructured.Unstructured{Object: content}
	found.SetGroupVersionKind(o.GroupVersionKind()) // a typed client leaves it out
	return found, err
}

// operatorRights adds what the operator needs, unless another brings it.
func (c *converge) operatorRights(ctx context.Context, r *rights) error {
	if !render.ManagesOperator(c.input) {
		return nil
	}
	r.need("the operator", "apps", "deployments", names.OperatorNamespace, names.OperatorDeployment, "get")
	deployed, err := c.deployedOperator(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if version := versionOf(deployed); version != "" {
		if order, err := render.CompareVersions(version, c.inst.KitVersion); err != nil || order > 0 {
			return nil // a newer one is left alone; a version that can't be read is told by the operator's own step
		}
	}
	set, opts, err := operatorSet(c.input, c.opts.Adopt)
	if err != nil {
		return err
	}
	r.need("the kinds of the operator", "apiextensions.k8s.io", "customresourcedefinitions", "", "", "list", "watch")
	r.rollout(render.OperatorLayer(c.input))
	return c.setRights(ctx, r, set, opts)
}

// mayConverge asks whether this user may do it all.
func (c *converge) mayConverge(ctx context.Context) ([]preflight.Finding, error) {
	reviews := c.cluster.client.AuthorizationV1()
	if all, err := preflight.MayAll(ctx, reviews); err != nil || all {
		return nil, err
	}
	r, err := c.rightsNeeded(ctx)
	if err != nil {
		return nil, err
	}
	user := preflight.WhoAmI(ctx, c.cluster.client)
	findings, err := preflight.Rights(ctx, reviews, user, r.needs, r.grants)
	if len(findings) > 0 {
		c.roles = func(ctx context.Context) string { return c.rolesThatDo(ctx, user) }
	}
	return findings, err
}

// rolesThatDo are the smallest roles for a user who lacks some; empty when what they depend on can't be read. A namespace that this user may
// not look at is taken for there.
func (c *converge) rolesThatDo(ctx context.Context, user string) string {
	homes, err := c.missingNamespaces(ctx)
	if err != nil {
		homes = nil
	}
	roles, _ := c.smallestRoles(ctx, homes, user)
	return roles
}

func (c *converge) rolesName() string { return "jr2-converge-" + c.cluster.namespace }
