package jr2

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// MinimalRoles are the roles, as YAML that kubectl applies, with which user may converge with these options and no more. Namespaces that are not
// there come first, because a Role needs its namespace; an admin makes them with the roles, and the user need not. Other objects that an admin
// made already are looked at too, so that nothing is given that is not needed; the caller must be allowed to look. user is the name as the API
// server knows it.
func MinimalRoles(ctx context.Context, opts Options, user string) (string, error) {
	opts.Events = nil
	run := &converge{opts: opts, result: &Result{}}
	if err := in(ctx, []step{run.load, run.readWhole, run.kitNames, run.connect, run.floor}); err != nil {
		return "", err
	}
	homes, err := run.missingNamespaces(ctx)
	if err != nil {
		return "", err
	}
	return run.smallestRoles(ctx, homes, user)
}

// smallestRoles are the roles that would do, after the namespaces that an admin makes with them.
func (c *converge) smallestRoles(ctx context.Context, homes []*unstructured.Unstructured, user string) (string, error) {
	with := *c
	with.given, with.unseen = homes, true
	r, err := with.rightsNeeded(ctx)
	if err != nil {
		return "", err
	}
	var grants []preflight.Grant
	for _, grant := range r.grants {
		standing, err := grant.Standing(ctx)
		if err != nil {
			return "", err
		}
		if !standing {
			grants = append(grants, grant)
		}
	}
	objs := preflight.MinimalRoles(c.rolesName(), user, r.needs, grants)
	var all []runtime.Object
	for _, namespace := range homes {
		all = append(all, namespace)
	}
	return preflight.RolesYAML(append(all, objs...))
}

// missingNamespaces are those of the Instance and of the operator that are not there, as the converge would make them.
func (c *converge) missingNamespaces(ctx context.Context) ([]*unstructured.Unstructured, error) {
	home, _, err := c.namespaceSet()
	if err != nil {
		return nil, err
	}
	wanted := home.Objects
	if render.ManagesOperator(c.input) {
		set, _, err := operatorSet(c.input, c.opts.Adopt)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, set.Objects...)
	}
	var missing []*unstructured.Unstructured
	for _, o := range wanted {
		if o.GetKind() != "Namespace" {
			continue
		}
		live, err := c.sharedObject(ctx, o)
		if err != nil {
			return nil, err
		}
		if live == nil {
			missing = append(missing, o)
		}
	}
	return missing, nil
}
