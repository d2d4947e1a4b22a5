package apply

import (
	"context"
	"errors"
	"maps"

	"k8s.io/client-go/rest"
)

// Withdraw removes a set: all that its inventory lists and that is the set's own by its mark, what holds data too, in the order of a prune; then
// the inventory. A set without an inventory is gone already.
//
// The Outcome is never nil and holds what became of each object. What says to keep it, is somebody else's, or is held by finalizers stays, with the
// reason; the inventory stays as long as one of the set's own objects does, so that the next Withdraw goes on. Errors are those of a prune: a
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
	switch {
	case r.opts.DryRun || ctx.Err() != nil:
		return err
	case err == nil && len(r.records) == 0:
		return r.retry.do(ctx, r.inv.ref(), r.inv.remove)
	}
	return errors.Join(err, r.keep(ctx))
}
