package apply

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hookStep says whether a hook would run, and shows it to the server.
func (r *run) hookStep(ctx context.Context, o order) Step {
	s := Step{Ref: o.ref, Intent: WillLeave}
	var due []string
	for _, p := range o.pos.phases {
		if p != SyncFail && r.hookDue(hookRun{o.ref, p}) {
			due = append(due, string(p))
		}
	}
	if len(due) == 0 {
		return s
	}
	s.Intent, s.Why = WillRun, "in the phase "+strings.Join(due, " and ")
	now := r.live.get(o.ref)
	if now != nil && now.DeletionTimestamp == nil {
		if !r.marked(now) {
			return s.fails(WillConflict, r.foreignHook(o.ref, now))
		}
		if err := r.tooDearForAHook(o.ref, now); err != nil {
			return s.fails(WillConflict, err)
		}
	}
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) error {
		at, err := r.cluster.full(ctx, o.ref)
		if meta.IsNoMatchError(err) && r.arrives(o.ref) {
			return nil
		}
		if err != nil {
			return final{r.unmapped(o.ref, err)}
		}
		options := metav1.CreateOptions{FieldManager: r.opts.FieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		if now != nil {
			err = r.provesNew(ctx, o) // under a name of its own, because the old one goes first
		} else {
			_, err = at.Create(ctx, o.hookBody(hookRun{o.ref, o.pos.phases[0]}, r.inv.release), options)
		}
		if apierrors.IsNotFound(err) && r.arrives(o.ref) || r.groundArrives(o.ref, Classify(err)) || Classify(err) == ClassQuotaWait {
			return nil
		}
		return err
	})
	if err != nil {
		return s.fails(WillFail, discreet(o, r.explain(ctx, o.ref, err)))
	}
	return s
}
