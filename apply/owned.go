package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/kubernetes"
)

// Owned lists the objects that the inventory of a set holds, sorted; none when the set has no inventory in that namespace.
func Owned(ctx context.Context, client kubernetes.Interface, name, namespace string) ([]Ref, error) {
	set := &Set{Name: name, Namespace: namespace}
	inv, err := loadInventory(ctx, client, set)
	if err != nil {
		return nil, fmt.Errorf("inventory of the set %s: %w", set.ID(), err)
	}
	refs := make([]Ref, 0, len(inv.records))
	for _, rec := range slices.SortedFunc(maps.Values(inv.records), func(a, b record) int { return compareRefs(a.Ref, b.Ref) }) {
		refs = append(refs, rec.Ref)
	}
	return refs, nil
}
