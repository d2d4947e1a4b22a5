package jr2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/preflight"
)

// Run provisions the Workspaces of a Workflow: for each it composes the Sandbox, with the images that the last converge delivered, waits for
// its place in the words of the scheduler or of the quota, and then until it is Ready. It does not execute the Machine, which is the
// Orchestrator's: each Workspace of the Machine is provisioned once, at the same time as the others, whatever its states would do. What the
// run is and where it stands is in the Sandboxes alone, so that Runs and Status tell of it after this process has ended in any way.
//
// When one Workspace can't be provisioned the others are given up. What never ran is deleted, what ran stays until its idle timeout. The
// RunResult is never nil. Errors: *UnknownWorkflowError, *UnknownSlotError, *NotConvergedError, *NoKindsError, *Refusal, *UnreachableError, or those of provision.Provision.
func Run(ctx context.Context, opts RunOptions) (*RunResult, error) {
	run := &workflowRun{
		opts: opts, result: &RunResult{ID: opts.ID, Workflow: opts.Workflow, Status: RunError, Workspaces: []provision.Workspace{}},
		converge: converge{result: &Result{}, opts: Options{
			Dir: opts.Dir, Env: opts.Env, Config: opts.Config, Kubeconfig: opts.Kubeconfig, Context: opts.Context, Namespace: opts.Namespace,
			Events: opts.Events,
		}},
	}
	err := in(ctx, []step{run.load, run.home, run.kinds, run.recall, run.compare, run.compose, run.sweep})
	if err == nil {
		err = run.provision(ctx) // the end of ctx is no error of a run that is held
	}
	if err != nil {
		run.result.Error = err.Error()
		if lost := (*provision.LostError)(nil); errors.As(err, &lost) {
			run.result.Code = lost.Code()
		}
	}
	return run.result, err
}

// workflowRun is one run. What it has in common with a converge, the Instance, the cluster and its record, it takes from there.
type workflowRun struct {
	converge
	opts     RunOptions
	result   *RunResult
	workflow config.Workflow
	key      config.Secret
	record   *images.Record
	requests []provision.Request
	mutex    sync.Mutex // of telling
}

func (r *workflowRun) load(ctx context.Context) error {
	inst, err := r.instance(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(inst.Workflows, func(w config.Workflow) bool { return w.Name == r.opts.Workflow })
	if at < 0 {
		return &UnknownWorkflowError{Workflow: r.opts.Workflow, Known: inst.WorkflowNames()}
	}
	r.workflow = inst.Workflows[at]
	only := *inst
	only.Workflows = inst.Workflows[at : at+1]
	if err := preflight.Refused(openParts(&only)); err != nil {
		return err
	}
	if err := knownSlots(r.workflow, r.opts.Repos); err != nil {
		return err
	}
	found, err := resolve(r.converge.opts)
	if err != nil {
		return err
	}
	r.inst, r.cluster = inst, found
	r.cluster.namespace = inst.Namespace(r.opts.Namespace)
	if r.result.ID == "" {
		r.result.ID = provision.NewRun()
	}
	r.result.Instance, r.result.Context, r.result.Namespace = inst.Name, found.context, r.cluster.namespace
	r.tell(RunStarted{RunID: r.result.ID, Workflow: r.workflow.Name, Instance: inst.Name, Context: found.context, Namespace: r.cluster.namespace})
	return r.cluster.dial()
}

// knownSlots refuses a url for a slot that nothing has: the run would leave it aside without a word.
func knownSlots(workflow config.Workflow, given map[string]string) error {
	var known []string
	for _, workspace := range workflow.Workspaces {
		for _, slot := range workspace.Repos {
			known = append(known, slot.Slot)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, slot := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, slot) {
			return &UnknownSlotError{Workflow: workflow.Name, Slot: slot, Known: known}
		}
	}
	return nil
}

func (r *workflowRun) instance(ctx context.Context) (*config.Instance, error) {
	if r.opts.Instance != nil {
		inst := withDefaults(r.opts.Instance)
		return inst, config.Validate(inst)
	}
	root, err := config.FindRoot(r.opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := r.readEnv(root); err != nil {
		return nil, err
	}
	return config.Load(ctx, config.LoadOptions{Dir: root, Env: r.env, Outermost: r.opts.Outermost, Isolate: r.opts.Isolate})
}

// home wants the namespace of this Instance.
func (r *workflowRun) home(ctx context.Context) error {
	reach, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if _, err := r.cluster.version(reach); err != nil {
		return r.cluster.unreached(err)
	}
	namespace, err := r.cluster.readNamespace(ctx)
	switch {
	case err != nil:
		return err
	case namespace == nil:
		return r.notConverged("the namespace does not exist")
	case namespace.Labels[names.LabelInstance] == "":
		return r.notConverged("the namespace belongs to no Instance")
	}
	_, findings := preflight.Ownership(r.cluster.context, r.cluster.namespace, r.inst.Name, namespace)
	return preflight.Refused(findings)
}

func (r *workflowRun) notConverged(why string) error {
	return &NotConvergedError{Instance: r.inst.Name, Context: r.cluster.context, Namespace: r.cluster.namespace, Why: why}
}

// sweep deletes the tokens that killed runs left without a Sandbox. That is not this run's business: trouble with it is told.
func (r *workflowRun) sweep(ctx context.Context) error {
	if len(r.requests) == 0 {
		return nil
	}
	if _, err := provision.SweepTokens(ctx, r.cluster.config, r.cluster.namespace); err != nil && !apierrors.IsForbidden(err) {
		r.tell(Noted{Message: "tokens that killed runs left may still be there: " + err.Error()})
	}
	return nil
}

// provision brings all Sandboxes at once, and gives the others up when one can't be brought.
func (r *workflowRun) provision(ctx context.Context) error {
	together, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	boxes, errs := make([]*provision.Provisioned, len(r.requests)), make([]error, len(r.requests))
	var all sync.WaitGroup
	for i, request := range r.requests {
		all.Go(func() {
			boxes[i], errs[i] = provision.Provision(together, r.cluster.config, request, provision.Options{
				Sizes: r.opts.Sizes, PlacingDeadline: r.opts.PlacingDeadline, Refuse: r.opts.Refuse, Events: r.tellProvision,
			})
			if errs[i] != nil {
				giveUp(&givenUpError{errs[i]})
			}
		})
	}
	all.Wait()
	err := ofItsOwn(errs)
	if err == nil {
		r.result.Status = RunReady
		if r.opts.Hold && len(boxes) > 0 {
			err = r.hold(ctx, boxes)
		}
	}
	for _, box := range boxes {
		box.Release()
		if box.Sandbox != nil && !box.Removed {
			r.result.Workspaces = append(r.result.Workspaces, workspaceOf(box)...)
		}
	}
	return err
}

// givenUpError ends the Workspaces of a run of which another one failed.
type givenUpError struct{ err error }

func (e *givenUpError) Error() string { return "another Workspace of the run failed: " + e.err.Error() }

// ofItsOwn joins the errors of the Workspaces that failed by themselves.
func ofItsOwn(errs []error) error {
	var own []error
	for _, err := range errs {
		if given := (*givenUpError)(nil); err != nil && !errors.As(err, &given) {
			own = append(own, err)
		}
	}
	if len(own) == 1 {
		return own[0]
	}
	return errors.Join(own...)
}

// workspaceOf tells of a Sandbox as last seen.
func workspaceOf(box *provision.Provisioned) []provision.Workspace {
	var workspaces []provision.Workspace
	for _, run := range provision.RunsOf([]v1alpha1.Sandbox{*box.Sandbox}) {
		workspaces = append(workspaces, run.Workspaces...)
	}
	for i := range workspaces {
		workspaces[i].State = box.State
	}
	return workspaces
}

// hold keeps the Sandboxes until ctx ends or one is lost, and deletes them.
func (r *workflowRun) hold(ctx context.Context, boxes []*provision.Provisioned) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan error, len(boxes))
	for _, box := range boxes {
		go func() { ends <- box.Watch(watching) }()
	}
	first := <-ends
	stop()
	for range len(boxes) - 1 {
		<-ends
	}
	if ctx.Err() != nil {
		first = nil // that is how a hold ends
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), names.RolloutTimeout)
	defer cancel()
	failed := r.teardown(clean, boxes)
	if first == nil && failed == nil {
		r.result.Status = RunEnded
	} else {
		r.result.Status = RunError
	}
	return errors.Join(first, failed)
}

func (r *workflowRun) teardown(ctx context.Context, boxes []*provision.Provisioned) error {
	var errs []error
	for _, box := range boxes {
		if err := box.Teardown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("after the run: %w", err))
			continue
		}
		box.State = provision.Ending
		r.tell(SandboxRemoved{Child: box.Sandbox.Annotations[v1alpha1.AnnotationChild], Sandbox: box.Sandbox.Name, Ran: true})
	}
	return errors.Join(errs...)
}
