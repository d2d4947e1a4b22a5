package occupants

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A kind is a namespaced resource, in the version of its group that the server prefers.
type kind struct {
	resource schema.GroupVersionResource
	name     string // its Kind
	listable bool
}

// String is "jobs.batch", or "secrets" for the core group.
func (k kind) String() string { return k.resource.GroupResource().String() }

// computed are groups whose objects are measured when they are asked for. Their servers are away more often than not, and what they say is
// nobody's.
var computed = []string{"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}

// kindsOf asks discovery for every kind of object that a namespace can hold. A group that is away is unseen.
func kindsOf(ctx context.Context, asking discovery.AggregatedDiscoveryInterfaceWithContext) ([]kind, []Unseen, error) {
	groups, resources, away, err := asking.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, nil, cause
		}
		return nil, nil, fmt.Errorf("ask which kinds the server has: %w", err)
	}
	var kinds []kind
	var unseen []Unseen
	for version, err := range away { // their groups need not be among those that are told
		if !slices.Contains(computed, version.Group) {
			unseen = append(unseen, Unseen{What: version.String(), Err: err})
		}
	}
	for _, group := range groups.Groups {
		if slices.Contains(computed, group.Name) {
			continue
		}
		taken := map[string]bool{}
		for _, version := range preferredFirst(group) {
			if away[version] != nil {
				continue
			}
			served, err := resources[version], error(nil)
			if served == nil { // a server that does not tell all of it at once
				served, err = asking.ServerResourcesForGroupVersionWithContext(ctx, version.String())
			}
			if cause := context.Cause(ctx); cause != nil {
				return nil, nil, cause
			}
			if err != nil {
				unseen = append(unseen, Unseen{What: version.String(), Err: err})
				continue
			}
			for _, r := range served.APIResources {
				if r.Namespaced && !strings.Contains(r.Name, "/") && !taken[r.Name] && deletable(r) {
					taken[r.Name] = true
					kinds = append(kinds, kind{version.WithResource(r.Name), r.Kind, slices.Contains(r.Verbs, "list")})
				}
			}
		}
	}
	return kinds, unseen, nil
}

func preferredFirst(group metav1.APIGroup) []schema.GroupVersion {
	versions := []schema.GroupVersion{}
	add := func(version string) {
		one := schema.GroupVersion{Group: group.Name, Version: version}
		if version != "" && !slices.Contains(versions, one) {
			versions = append(versions, one)
		}
	}
	add(group.PreferredVersion.Version)
	for _, version := range group.Versions {
		add(version.Version)
	}
	return versions
}

func deletable(r metav1.APIResource) bool {
	return slices.Contains(r.Verbs, "delete") || slices.Contains(r.Verbs, "deletecollection")
}
