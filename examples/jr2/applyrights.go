package main

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/preflight"
)

// lockName is that of the Lease which keeps two applies of a set apart.
func lockName(set *apply.Set) string { return "jr2-apply-" + set.Name }

// rights asks whether this user may do all that the apply does.
func (c *connected) rights(ctx context.Context, set *apply.Set, opts apply.Options) ([]preflight.Finding, error) {
	leaving, err := apply.Leaving(ctx, c.client, set, opts)
	if err != nil && !apierrors.IsForbidden(err) { // a record that may not be read is the business of another right
		return nil, err
	}
	record, lock := "the record of "+set.ID(), "the lock of "+set.ID()
	asked := preflight.SetRightsOptions{
		Verbs: apply.Verbs,
		Unchanged: func(live, asked *unstructured.Unstructured) bool {
			return live.GetAnnotations()[apply.SetAnnotation] == set.ID() && apply.Holds(live, asked)
		},
		Also: slices.Concat(
			preflight.Needs(record, "", "configmaps", set.Namespace, apply.InventoryName(set.Name), "get", "create", "update"),
			preflight.Needs(lock, "coordination.k8s.io", "leases", set.Namespace, lockName(set), "get", "create", "update"),
		),
	}
	for _, ref := range leaving.Goes {
		asked.Leaving = append(asked.Leaving, named(ref))
	}
	for _, ref := range slices.Concat(leaving.Stays, leaving.Unseen) {
		asked.Seen = append(asked.Seen, named(ref))
	}
	for _, o := range set.Objects {
		if apply.IsHook(o) {
			asked.Leaving = append(asked.Leaving, o) // what has its name is deleted before it is made
		}
	}
	findings, err := preflight.SetRights(ctx, c.client, set.Objects, asked)
	if err != nil {
		return findings, fmt.Errorf("%s: %w", c.context, err)
	}
	return findings, nil
}

// named is an object of which no more is known than what it is called.
func named(ref apply.Ref) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(ref.GroupVersionKind())
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	return o
}
