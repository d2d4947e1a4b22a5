package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scopes says which kinds live in no namespace. What an object is comes from the scope that the cluster gives its kind, or the definition that the
// set brings, and never from the text of a manifest: the API server drops a namespace that a cluster-scoped object names, so "ClusterRole ops/audit"
// and "ClusterRole audit" are one object.
type scopes struct {
	mu      sync.Mutex
	cluster map[schema.GroupKind]bool // known kinds; true for cluster-scoped ones
}

// of says whether a kind is known to be cluster-scoped.
func (s *scopes) of(r Ref) (clusterScoped, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clusterScoped, known = s.cluster[schema.GroupKind{Group: r.Group, Kind: r.Kind}]
	return clusterScoped, known
}

func (s *scopes) note(r Ref, clusterScoped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		s.cluster = map[schema.GroupKind]bool{}
	}
	s.cluster[schema.GroupKind{Group: r.Group, Kind: r.Kind}] = clusterScoped
}

// identity is the Ref without a namespace that its kind does not have. A kind of which nobody knows the scope keeps it.
func (s *scopes) identity(r Ref) Ref {
	if clusterScoped, _ := s.of(r); clusterScoped {
		r.Namespace = ""
	}
	return r
}

// learn asks for the scopes of the kinds of refs that name a namespace: nothing can be wrong with the others.
func (r *run) learn(ctx context.Context, refs []Ref) error {
	var asked []Ref
	for _, ref := range refs {
		same := func(a Ref) bool { return a.Group == ref.Group && a.Kind == ref.Kind }
		if _, known := r.scopes.of(ref); !known && ref.Namespace != "" && !slices.ContainsFunc(asked, same) {
			asked = append(asked, ref)
		}
	}
	return r.each(len(asked), func(i int) error {
		return r.retry.do(ctx, asked[i], func(ctx context.Context) error {
			clusterScoped, known, err := scopeOf(ctx, r.cluster.mapper, r.set.Objects, asked[i])
			if known {
				r.scopes.note(asked[i], clusterScoped)
			}
			return err
		})
	})
}

// scopeOf asks the cluster, and then the definitions of the set, for the scope of a kind. It is not known where neither says it, or nobody can tell
// now because the server of the group is away.
func scopeOf(ctx context.Context, m *mapper, objs []*unstructured.Unstructured, ref Ref) (clusterScoped, known bool, err error) {
	mapping, err := m.mapping(ctx, ref.GroupVersionKind())
	switch one := (*awayError)(nil); {
	case err == nil:
		return mapping.Scope.Name() == meta.RESTScopeNameRoot, true, nil
	case errors.As(err, &one):
		return false, false, nil
	case !meta.IsNoMatchError(err):
		return false, false, err
	}
	for _, o := range objs {
		if tierOf(RefOf(o)) != tierKinds {
			continue
		}
		if brought := broughtBy(o); brought.Group == ref.Group && brought.Kind == ref.Kind {
			return text(dig(o.Object, "spec", "scope")) == "Cluster", true, nil
		}
	}
	return false, false, nil
}

// identify takes out of the objects of the set the namespaces that their kinds do not have.
func (r *run) identify(ctx context.Context) error {
	refs := make([]Ref, len(r.orders))
	for i, o := range r.orders {
		refs[i] = o.ref
	}
	if err := r.learn(ctx, refs); err != nil {
		return err
	}
	set := *r.set
	set.Objects = slices.Clone(r.set.Objects)
	moved := false
	for i, ref := range refs {
		if clusterScoped, _ := r.scopes.of(ref); clusterScoped && ref.Namespace != "" {
			set.Objects[i] = set.Objects[i].DeepCopy()
			set.Objects[i].SetNamespace("")
			moved = true
		}
	}
	if !moved {
		return nil
	}
	if err := refuseTwins(r.set, set.Objects); err != nil {
		return err
	}
	return r.take(&set)
}

// refuseTwins refuses objects that were told apart by namespaces only, which their kind does not have.
func refuseTwins(set *Set, objs []*unstructured.Unstructured) error {
	first := map[Ref]int{}
	var problems []Problem
	for i, o := range objs {
		ref := RefOf(o)
		at, twice := first[ref.key()]
		if !twice {
			first[ref.key()] = i
			continue
		}
		problems = append(problems, Problem{
			Origin: set.origin(i), Ref: ref, Path: "metadata.namespace",
			Text: fmt.Sprintf("objects of this kind live in no namespace, so this is the same object as %s, which the set holds too; take one of them out", set.named(at)),
		})
	}
	if len(problems) > 0 {
		return &SetError{Problems: problems}
	}
	return nil
}

// named tells an object of the set by what its manifest says, and where that stands.
func (s *Set) named(i int) string {
	ref := RefOf(s.Objects[i])
	if origin := s.origin(i); origin != "" {
		return fmt.Sprintf("%s from %s", ref, origin)
	}
	return ref.String()
}

// origin is where the manifest of an object stands; "" for one that was not read.
func (s *Set) origin(i int) string { return s.origins[RefOf(s.Objects[i]).key()] }

// identifyRecords finds the records of earlier runs under the identities of their objects. Of two that mean one object the one that saw it stays.
func (r *run) identifyRecords(ctx context.Context) error {
	if r.opts.Prune {
		former := slices.Clone(r.opts.PruneData)
		near, far := r.formerPlaces()
		r.live.hide(far, errTooManyPlaces)
		former = append(former, near...)
		if err := r.learn(ctx, former); err != nil {
			return err
		}
	}
	for key, rec := range r.inv.records {
		ref := r.scopes.identity(rec.Ref)
		if ref == rec.Ref {
			continue
		}
		delete(r.inv.records, key)
		if why := r.live.hidden(rec.Ref); why != nil && !r.wanted[ref.key()] {
			r.live.hide([]Ref{ref}, why)
		}
		rec.Ref = ref
		if was, twice := r.inv.records[rec.key()]; !twice || was.UID == "" {
			r.inv.records[rec.key()] = rec
		}
	}
	return nil
}
