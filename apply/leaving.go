package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/kubernetes"
)

// Leaving lists what the inventory of a set holds and the set no longer, sorted: goes is what a prune with these options deletes, where it is there
// and still the set's; stays is what it only looks at, because it holds data and is not named. Both are empty where nothing is pruned. What is to
// be deleted needs that right, which nothing else of an Apply does.
func Leaving(ctx context.Context, client kubernetes.Interface, set *Set, opts Options) (goes, stays []Ref, err error) {
	if !opts.Prune || opts.Shared {
		return nil, nil, nil
	}
	inv, err := loadInventory(ctx, client, set)
	if err != nil {
		return nil, nil, fmt.Errorf("inventory of the set %s: %w", set.ID(), err)
	}
	wanted := map[Ref]bool{}
	for _, o := range set.Objects {
		wanted[RefOf(o).key()] = true
	}
	for _, rec := range slices.SortedFunc(maps.Values(inv.records), func(a, b record) int { return compareRefs(a.Ref, b.Ref) }) {
		switch {
		case wanted[rec.key()]:
		case holdsData(rec.Ref) && !slices.ContainsFunc(opts.PruneData, func(named Ref) bool { return named.key() == rec.key() }):
			stays = append(stays, rec.Ref)
		default:
			goes = append(goes, rec.Ref)
		}
	}
	return goes, stays, nil
}
