package apply

import "context"

// rehearse says what Apply would do to one object, as a plan does.
func (r *run) rehearse(ctx context.Context, o order) (ObjectResult, error) {
	s := r.step(ctx, o)
	if s.err != nil {
		return ObjectResult{}, s.err
	}
	return ObjectResult{Ref: o.ref, UID: string(s.uid), Action: s.Intent.action(), Why: s.Why}, nil
}

// action is what Apply does where a plan says so.
func (i Intent) action() Action {
	switch i {
	case WillCreate, WillArrive:
		return Created
	case WillConfigure, WillAdopt:
		return Configured
	case WillRecreate:
		return Recreated
	case WillMint:
		return Minted
	case WillRun:
		return Ran
	case WillPrune:
		return Pruned
	case WillKeep:
		return Kept
	case StillGoing:
		return Terminating
	}
	return Unchanged
}
