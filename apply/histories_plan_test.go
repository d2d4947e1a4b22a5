package apply_test

import (
	"errors"
	"slices"

	"jr2.dev/jr2/apply"
)

// samePlan holds what a run did against the plan that was made right before it, object by object.
func (h *history) samePlan(r ran, before, after view) {
	planErr := r.plan.Err()
	var removal *apply.RemovalError
	waits := errors.As(r.err, &removal) // what is held by others, and for how long, is nothing that a plan knows
	if planErr != nil && r.err == nil {
		h.fault("the plan is refused, and the run was not: %v", planErr)
	}
	if planErr == nil && r.err != nil && !waits && !h.plannedWait(r.plan) {
		h.fault("the plan is not refused, and the run was: %v", r.err)
	}
	for _, step := range r.plan.Steps {
		did := r.outcome.Did(step.Ref)
		if did == "" && (r.err != nil || h.endsByItself(before, step.Ref)) {
			continue
		}
		if !h.fits(step, did, waits, before) && !h.rewritten(step, did, before, after) {
			h.fault("the plan says %q of %s (%s), and the run did %q", step.Intent, h.sayRef(step.Ref), step.Why, did)
		}
	}
	for _, o := range r.outcome.Objects {
		if _, planned := r.plan.Step(o.Ref); !planned {
			h.fault("the run did %q to %s, of which the plan says nothing", o.Action, h.sayRef(o.Ref))
		}
	}
}

// rewritten says that a claim was written and nothing of it changed. The server stores one anew with the first write
// after the one that made it.
func (h *history) rewritten(step apply.Step, did apply.Action, before, after view) bool {
	return step.Intent == apply.WillLeave && did == apply.Configured && step.Ref.Kind == "PersistentVolumeClaim" &&
		slices.ContainsFunc(before.sorted(), func(s *sight) bool {
			return apply.RefOf(s.object) == step.Ref && after[s.uid] != nil && after[s.uid].digest == s.digest
		})
}

// plannedWait says that an object in the way is being deleted, so that the run waits for what has no end that a plan
// knows.
func (h *history) plannedWait(plan *apply.Plan) bool {
	return slices.ContainsFunc(plan.Steps, func(s apply.Step) bool {
		return s.Intent == apply.WillCreate && len(s.Finalizers) > 0
	})
}

// fits says that a deed is what an intent means.
func (h *history) fits(step apply.Step, did apply.Action, waits bool, before view) bool {
	switch step.Intent {
	case apply.WillCreate, apply.WillArrive:
		return did == apply.Created
	case apply.WillConfigure:
		return did == apply.Configured
	case apply.WillLeave:
		return did == apply.Unchanged
	case apply.WillAdopt:
		return did == apply.Configured
	case apply.WillKeep:
		return did == apply.Kept
	case apply.StillGoing:
		return did == apply.Terminating
	case apply.WillPrune:
		return did == apply.Pruned || did == apply.Terminating && h.isHeld(before, step.Ref) || did == apply.Kept && waits
	}
	return false
}

func (h *history) isHeld(before view, ref apply.Ref) bool {
	return slices.ContainsFunc(before.sorted(), func(s *sight) bool {
		return apply.RefOf(s.object) == ref && len(s.object.GetFinalizers()) > 0
	})
}

// endsByItself says that Kubernetes was about to let go of an object.
func (h *history) endsByItself(before view, ref apply.Ref) bool {
	return slices.ContainsFunc(before.sorted(), func(s *sight) bool { return apply.RefOf(s.object) == ref && s.going })
}
