package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// kubectlApply is the field manager of client-side kubectl apply.
const kubectlApply = "kubectl-client-side-apply"

// lastApplied is the annotation in which client-side apply keeps what it sent.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// adopts says that the set does not hold an object yet that is there.
func (r *run) adopts(now metav1.Object) bool {
	if r.opts.Shared {
		return entryOf(now, r.opts.FieldManager) == ""
	}
	return !r.marked(now)
}

// clientSide lists the managers of an object, in the order of names, whose fields become this set's when it adopts the object: see
// Conflicts.Migrate.
func (r *run) clientSide(ref Ref, now metav1.Object) []string {
	names := r.opts.Conflicts.Migrate
	switch {
	case r.madeAsHook(now):
		names = []string{r.opts.FieldManager} // it was a hook, which is created and not applied
	case !r.adopts(now):
		return nil
	case names == nil && ref.isSecret(): // no value changes hands without being named
		return nil
	case names == nil:
		names = []string{kubectlApply}
		annotation := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", lastApplied))
		for _, e := range csaupgrade.FindFieldsOwners(now.GetManagedFields(), metav1.ManagedFieldsOperationUpdate, annotation) {
			names = append(names, e.Manager)
		}
	}
	found := sets.New[string]()
	for _, e := range now.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && slices.Contains(names, e.Manager) {
			found.Insert(e.Manager)
		}
	}
	return sets.List(found)
}

// migrate makes the fields of client-side apply this set's, so that the apply that follows takes away those that the set does not have
// and meets no conflict with them. It changes no value. A run that ends between the two leaves an object that the next one applies to.
func (r *run) migrate(ctx context.Context, at metadata.ResourceInterface, ref Ref) error {
	now := r.live.get(ref)
	if now == nil || now.DeletionTimestamp != nil {
		return nil
	}
	managers := r.clientSide(ref, now)
	if len(managers) == 0 {
		return nil
	}
	s, planned := r.planned(ref)
	if planned && s.version != now.ResourceVersion {
		var err error
		if now, err = r.getMeta(ctx, at, ref); err != nil || now == nil || s.version != now.ResourceVersion {
			return err // the planned write finds the same, and decides whether that matters
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(now, sets.New(managers...), r.opts.FieldManager)
	if err != nil || patch == nil {
		return err
	}
	got, err := at.Patch(context.WithValue(ctx, refKey{}, ref), ref.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: r.opts.FieldManager})
	switch Classify(err) {
	case ClassNone:
		r.live.put(ref, got)
		if planned { // nothing but this patch came between the version that the plan saw and this one
			s.version = got.ResourceVersion
			r.mu.Lock()
			r.steps[ref.key()] = s
			r.mu.Unlock()
		}
		return nil
	case ClassStale, ClassNotFound:
		if planned {
			return nil // as above
		}
		again, lookErr := r.getMeta(ctx, at, ref)
		if lookErr != nil {
			return lookErr
		}
		r.live.put(ref, again)
		if again != nil {
			if err := r.claim(ref, again); err != nil {
				return final{err}
			}
		}
		return &ObjectError{Ref: ref, Class: ClassStale, Err: err}
	}
	return err
}

// A migration is what a dry run needs to know of fields that are still client-side apply's.
type migration struct {
	managers []string
	owned    *fieldpath.Set // by this engine, when they are migrated
}

// migrationOf looks at an object that a dry run read; nil when nothing is to be migrated.
func (r *run) migrationOf(before *unstructured.Unstructured) (*migration, error) {
	if before == nil {
		return nil, nil
	}
	managers := r.clientSide(RefOf(before), before)
	if len(managers) == 0 {
		return nil, nil
	}
	upgraded := before.DeepCopy()
	if err := csaupgrade.UpgradeManagedFields(upgraded, sets.New(managers...), r.opts.FieldManager); err != nil {
		return nil, err
	}
	owned, _, err := ownership(upgraded, r.opts.FieldManager, nil)
	return &migration{managers, owned}, err
}

// has says that the fields of the manager are to be migrated.
func (m *migration) has(manager string) bool { return m != nil && slices.Contains(m.managers, manager) }

// dropMigrated takes out of an object what its managers would leave to nobody: what was client-side apply's and is not asked for. It
// reports whether there was any.
func (m *migration) dropMigrated(after *unstructured.Unstructured, manager string) (bool, error) {
	asked, others, err := ownership(after, manager, m.managers)
	if err != nil {
		return false, err
	}
	keep := asked.Union(others)
	dropped := false
	m.owned.Difference(keep).Iterate(func(p fieldpath.Path) {
		if !holdsUnder(keep, p) && drop(after.Object, p) {
			dropped = true
		}
	})
	return dropped, nil
}

// ownership returns the fields that the manager applied, and those of everybody else but the ignored, who only updated.
func ownership(o *unstructured.Unstructured, manager string, ignored []string) (own, others *fieldpath.Set, err error) {
	own, others = fieldpath.NewSet(), fieldpath.NewSet()
	for _, e := range o.GetManagedFields() {
		if e.FieldsV1 == nil {
			continue
		}
		applied := e.Operation == metav1.ManagedFieldsOperationApply
		if !applied && e.Subresource == "" && slices.Contains(ignored, e.Manager) {
			continue
		}
		var s fieldpath.Set
		if err := s.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return nil, nil, err
		}
		if applied && e.Subresource == "" && e.Manager == manager {
			own = own.Union(&s)
		} else {
			others = others.Union(&s)
		}
	}
	return own, others, nil
}

// holdsUnder says that a set has the path or something below it.
func holdsUnder(s *fieldpath.Set, p fieldpath.Path) bool {
	for i, element := range p {
		if i == len(p)-1 && s.Members.Has(element) {
			return true
		}
		s = s.WithPrefix(element)
	}
	return !s.Empty()
}

// drop removes what is at a path, and reports whether it was there.
func drop(in any, p fieldpath.Path) bool {
	e := p[0]
	switch v := in.(type) {
	case map[string]any:
		if e.FieldName == nil {
			return false
		}
		child, ok := v[*e.FieldName]
		if !ok {
			return false
		}
		if len(p) == 1 {
			delete(v, *e.FieldName)
			return true
		}
		list, isList := child.([]any)
		if !isList || len(p) > 2 {
			return drop(child, p[1:])
		}
		i := indexOf(list, p[1])
		if i < 0 {
			return false
		}
		v[*e.FieldName] = slices.Delete(slices.Clone(list), i, i+1)
		return true
	case []any:
		if i := indexOf(v, e); i >= 0 && len(p) > 1 {
			return drop(v[i], p[1:])
		}
	}
	return false
}

// indexOf finds the item of a list that a path element means.
func indexOf(list []any, e fieldpath.PathElement) int {
	return slices.IndexFunc(list, func(item any) bool {
		switch {
		case e.Value != nil:
			return smdvalue.Equals(*e.Value, smdvalue.NewValueInterface(item))
		case e.Key != nil:
			for _, k := range *e.Key {
				if !smdvalue.Equals(k.Value, smdvalue.NewValueInterface(dig(item, k.Name))) {
					return false
				}
			}
			return true
		}
		return false
	})
}
