package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
)

// A Departing is what the record of a set lists and the set no longer holds. Each list is sorted.
type Departing struct {
	// Goes is what a prune with these options deletes, which needs that right: it is there and carries the mark of the set.
	Goes []Ref
	// Stays is what carries the mark and is only looked at, because it holds data and is not named, or says to keep it.
	Stays []Ref
	// Unseen is what the caller may not look at, so that nobody knows whether it is the set's. A prune leaves it alone. Whoever gives rights by this
	// list gives them to whoever may write the record.
	Unseen []Ref
}

// mostLooks bounds how many objects of a record are looked at one by one.
const mostLooks = 2000

// Leaving looks at what the record of a set holds and the set no longer. Nothing is leaving where nothing is pruned. Of what the record lists only that
// counts which carries the mark of the set: whoever may edit ConfigMaps in its namespace may write any name there.
func Leaving(ctx context.Context, client kubernetes.Interface, set *Set, opts Options) (Departing, error) {
	if !opts.Prune || opts.Shared {
		return Departing{}, nil
	}
	opts = opts.withDefaults()
	inv, err := loadInventory(ctx, client, set)
	if err != nil {
		return Departing{}, fmt.Errorf("inventory of the set %s: %w", set.ID(), err)
	}
	wanted := map[Ref]bool{}
	for _, o := range set.Objects {
		wanted[RefOf(o).key()] = true
	}
	maps.DeleteFunc(inv.records, func(k Ref, _ record) bool { return wanted[k] })
	near, _ := nearest(inv.records)
	l := &leavingLook{client: client, set: set, opts: opts, mapper: &mapper{discovery: discovery.ToDiscoveryInterfaceWithContext(client.Discovery())}}
	if err := l.scopesOf(ctx, near); err != nil {
		return Departing{}, err
	}
	for _, o := range set.Objects {
		wanted[l.scopes.identity(RefOf(o)).key()] = true
	}
	near = slices.DeleteFunc(near, func(ref Ref) bool { return wanted[l.scopes.identity(ref).key()] })
	return l.look(ctx, inv.records, near[:min(len(near), mostLooks)])
}

// A leavingLook is one call of Leaving.
type leavingLook struct {
	client kubernetes.Interface
	set    *Set
	opts   Options
	mapper *mapper
	scopes scopes
}

// scopesOf asks for the scopes of the kinds of what seems to leave; for none, when nothing does.
func (l *leavingLook) scopesOf(ctx context.Context, refs []Ref) error {
	for _, ref := range refs {
		if _, asked := l.scopes.of(ref); asked {
			continue
		}
		clusterScoped, found, err := scopeOf(ctx, l.mapper, l.set.Objects, ref)
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		if found {
			l.scopes.note(ref, clusterScoped)
		}
	}
	return nil
}

func (l *leavingLook) look(ctx context.Context, records map[Ref]record, refs []Ref) (found Departing, err error) {
	named := func(ref Ref) bool {
		return slices.ContainsFunc(l.opts.PruneData, func(x Ref) bool { return l.scopes.identity(x).key() == ref.key() })
	}
	lists := make([]*[]Ref, len(refs))
	err = parallel(len(refs), l.opts.Concurrency, func(i int) error {
		keep := records[refs[i].key()].Keep
		refs[i] = l.scopes.identity(refs[i])
		now, err := l.get(ctx, refs[i])
		switch {
		case apierrors.IsForbidden(err):
			lists[i] = &found.Unseen
		case err != nil:
			return fmt.Errorf("%s: %w", refs[i], err)
		case now == nil || !isMarked(now, l.set, l.opts.FieldManager):
		case keep != "" || keepMarkOf(now, false) != "" || holdsData(refs[i]) && !named(refs[i]):
			lists[i] = &found.Stays
		default:
			lists[i] = &found.Goes
		}
		return nil
	})
	for i, list := range lists {
		if list != nil {
			*list = append(*list, refs[i])
		}
	}
	return found, err
}

// get reads the metadata of an object; nil when there is none, or nobody serves its kind.
func (l *leavingLook) get(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	mapping, err := l.mapper.mapping(ctx, ref.GroupVersionKind())
	if _, away := err.(*awayError); away || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if namespaced && ref.Namespace == "" {
		return nil, nil
	}
	path := []string{"/apis", mapping.Resource.Group, mapping.Resource.Version}
	if mapping.Resource.Group == "" {
		path = []string{"/api", mapping.Resource.Version}
	}
	if namespaced {
		path = append(path, "namespaces", ref.Namespace)
	}
	raw, err := l.client.Discovery().RESTClient().Get().AbsPath(append(path, mapping.Resource.Resource, ref.Name)...).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now := &metav1.PartialObjectMetadata{}
	return now, json.Unmarshal(raw, now)
}
