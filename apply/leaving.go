package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
)

// Leaving lists what the inventory of a set holds and the set no longer, sorted: goes is what a prune with these options deletes, where it is there
// and still the set's; stays is what it only looks at, because it holds data and is not named, or says to keep it. Both are empty where nothing is
// pruned. What is to be deleted needs that right, which nothing else of an Apply does.
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
	maps.DeleteFunc(inv.records, func(k Ref, _ record) bool { return wanted[k] })
	known, err := scopesOfLeaving(ctx, client, set, inv.records)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range set.Objects {
		wanted[known.identity(RefOf(o)).key()] = true
	}
	named := func(rec record) bool {
		return slices.ContainsFunc(opts.PruneData, func(x Ref) bool { return known.identity(x).key() == rec.key() })
	}
	for _, rec := range slices.SortedFunc(maps.Values(inv.records), func(a, b record) int { return compareRefs(a.Ref, b.Ref) }) {
		rec.Ref = known.identity(rec.Ref)
		switch {
		case wanted[rec.key()]:
		case rec.Keep != "" || holdsData(rec.Ref) && !named(rec):
			stays = append(stays, rec.Ref)
		default:
			goes = append(goes, rec.Ref)
		}
	}
	return goes, stays, nil
}

// scopesOfLeaving asks for the scopes of the kinds of what seems to leave; for none, when nothing does.
func scopesOfLeaving(ctx context.Context, client kubernetes.Interface, set *Set, records map[Ref]record) (*scopes, error) {
	known := &scopes{}
	m := &mapper{discovery: discovery.ToDiscoveryInterfaceWithContext(client.Discovery())}
	for _, rec := range records {
		if _, asked := known.of(rec.Ref); asked {
			continue
		}
		clusterScoped, found, err := scopeOf(ctx, m, set.Objects, rec.Ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rec.Ref, err)
		}
		if found {
			known.note(rec.Ref, clusterScoped)
		}
	}
	return known, nil
}
