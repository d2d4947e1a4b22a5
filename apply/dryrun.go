package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// dryRunAction is actionOf for a dry run, whose answer keeps the resourceVersion whatever would change. Where the managed fields leave
// it open, because something else is asked for than last time and the entry's time has steps of a second, the whole objects decide.
func (r *run) dryRunAction(ctx context.Context, o order, before, after *metav1.PartialObjectMetadata, rec record) (Action, error) {
	switch {
	case before == nil || before.UID != after.UID:
		return Created, nil
	case entryOf(before, r.opts.FieldManager) != entryOf(after, r.opts.FieldManager):
		return Configured, nil
	case o.wantedBefore(before, rec):
		return Unchanged, nil
	}
	differs, err := r.wouldDiffer(ctx, o)
	if err != nil {
		return "", err
	}
	if differs {
		return Configured, nil
	}
	return Unchanged, nil
}

// wouldDiffer compares the live object with what the server says it would become.
func (r *run) wouldDiffer(ctx context.Context, o order) (bool, error) {
	m, err := r.cluster.mapping(o.ref)
	if err != nil {
		return false, err
	}
	var at dynamic.ResourceInterface = r.cluster.dynamic.Resource(m.Resource)
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		at = r.cluster.dynamic.Resource(m.Resource).Namespace(o.ref.Namespace)
	}
	var now, then *unstructured.Unstructured
	err = r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		if now, err = at.Get(ctx, o.ref.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		then, err = at.Apply(ctx, o.ref.Name, o.body, metav1.ApplyOptions{FieldManager: r.opts.FieldManager, Force: true, DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if err != nil {
		return false, err
	}
	return !equality.Semantic.DeepEqual(withoutNotes(now).Object, withoutNotes(then).Object), nil
}
