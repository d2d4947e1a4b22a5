package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Withdraw removes a set: all that its inventory lists and that is the set's own by its mark, what holds data too, in the order of a prune; then
// the inventory. A set without an inventory is gone already.
//
// The Outcome is never nil and holds what became of each object. What says to keep it, is somebody else's, or is held by finalizers stays, with the
// reason; the inventory stays as long as one of the set's own objects does, so that the next Withdraw goes on. A Namespace that stays loses the
// set's mark. What is deleted is waited for, each object for Ready.Timeout. Errors are those of a prune: a
// *RemovalError, an *ObjectError, or several of them joined. Of the options those count that say how to prune, to retry, to wait and to tell.
func Withdraw(ctx context.Context, cfg *rest.Config, name, namespace string, opts Options) (*Outcome, error) {
	opts.Prune, opts.Shared, opts.withdraw = true, false, true
	r, err := newRun(cfg, &Set{Name: name, Namespace: namespace}, opts)
	if err != nil {
		return &Outcome{}, err
	}
	if err := r.readCluster(ctx); err != nil {
		return &Outcome{}, err
	}
	err = r.withdraw(ctx)
	return r.outcome(), err
}

// withdraw prunes everything, and keeps of the inventory what stays.
func (r *run) withdraw(ctx context.Context) error {
	r.records = maps.Clone(r.inv.records)
	var err error
	r.pruned, err = r.prune(ctx, r.records)
	if r.opts.DryRun || ctx.Err() != nil {
		return err
	}
	for _, x := range r.pruned {
		if err == nil && x.Action == Kept && x.Ref.Group == "" && x.Ref.Kind == "Namespace" { // else it may go the next time
			err = errors.Join(err, r.leave(ctx, x.Ref))
		}
	}
	if err == nil && len(r.records) == 0 {
		return r.retry.do(ctx, r.inv.ref(), r.inv.remove)
	}
	return errors.Join(err, r.keep(ctx))
}

// leave takes the mark of the set off a Namespace that stays, so that it is nobody's again.
func (r *run) leave(ctx context.Context, ref Ref) error {
	return r.retry.do(ctx, ref, func(ctx context.Context) error {
		namespaces := r.cluster.typed.CoreV1().Namespaces()
		now, err := namespaces.Get(ctx, ref.Name, metav1.GetOptions{})
		if err == nil && r.marked(now) {
			gone := fmt.Sprintf(`%q:null`, SetAnnotation)
			if r.madeIt(now) {
				gone += fmt.Sprintf(`,%q:null`, MadeAnnotation)
			}
			patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q,"annotations":{%s}}}`, now.UID, now.ResourceVersion, gone)
			_, err = namespaces.Patch(ctx, ref.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: r.opts.FieldManager})
		}
		if err == nil || Classify(err) == ClassNotFound {
			delete(r.records, ref.key())
			return nil
		}
		return err
	})
}
