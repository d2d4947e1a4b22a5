package provision

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/v1alpha1"
)

// Budgets and bounds of a provision where Options say nothing (source: spec, "Provision budgets").
const (
	ReadyBudget = 120 * time.Second // for the pod to be Ready, from its placement
	RepoBudget  = 25 * time.Minute  // the same, when the pod is Ready and a repository is not on its node
	LeaseEvery  = 5 * time.Minute   // between renewals of the lease, give or take a fifth
	// UnheededAfter is for an operator to say something of the Sandbox, before that is told. No source gives it.
	UnheededAfter = 15 * time.Second
)

// A Request is one Sandbox to bring. Compose makes one.
type Request struct {
	// Sandbox is what to write; it is not changed. Name, namespace and image are required. The labels of a run and of its Workflow and the
	// annotation of its child path make it visible to Runs; with none of them it is nobody's run.
	Sandbox *v1alpha1.Sandbox
	// Token goes into the Secret <name>-token, which is written before the Sandbox and owned by it then. Absent means no Secret.
	Token config.Secret
	// Repos that are not in the cluster are made before the Sandbox; those that are stay as they are.
	Repos []*v1alpha1.Repo
}

// Options say how to wait. The zero Options waits in Placing for ever.
type Options struct {
	// Sizes holds the maximum: a Sandbox that asks for more is refused with a *placement.SizeCapError before anything is written. The zero
	// value caps nothing; Default plays no part.
	Sizes placement.SizeRange
	// PlacingDeadline ends Placing with a *LostError that matches ErrPlacingDeadline, counted from the call. 0 means none.
	PlacingDeadline time.Duration
	// Refuse decides, for each reason to wait and each change of it, whether not to wait for it: the end is a *LostError that matches
	// ErrRefused. Nil waits for everything. NeverFits is one.
	Refuse func(Wait) bool
	// ReadyBudget, RepoBudget, LeaseEvery and UnheededAfter replace the constants of these names; 0 means the constant. Time in which the pod
	// is Ready and a repository is not counts against RepoBudget alone.
	ReadyBudget, RepoBudget, LeaseEvery, UnheededAfter time.Duration
	// Events receives what happens, one call at a time; nil discards.
	Events func(Event)
}

// NeverFits refuses to wait for what waiting can't bring, for Options.Refuse.
func NeverFits(w Wait) bool { return w.Outlook == Never }

// Provisioned is a Sandbox and its lease.
type Provisioned struct {
	// Sandbox is as last seen; nil when it was never written.
	Sandbox *v1alpha1.Sandbox
	// State is where it stands; Ready when Provision ended without an error.
	State State
	// Adopted says that the Sandbox was there before, from a Provision of the same Request that was cut off.
	Adopted bool
	// Placing is how long it was in Placing.
	Placing time.Duration
	// Removed says that the Sandbox, which never ran, was deleted again.
	Removed bool

	client *client
	tell   func(Event)
	about  About
	lease  *lease
	secret types.UID // of the token's Secret, "" when there is none
}

// Provision writes a Sandbox and waits until it is Ready: in Placing for as long as there is no room, with no deadline but the caller's, and
// from its placement on within a budget. It renews the lease of the Sandbox from the write on; after a success until Release or Teardown, or
// until ctx ends.
//
// A Sandbox of this name that has the labels and the child path of the Request is taken for the caller's own, from a Provision that was cut
// off: the wait goes on. Any other one is an *ExistsError.
//
// When it ends otherwise, what never ran is deleted at once, that Sandbox and no other of its name, and what ran stays until its idle
// timeout. The Provisioned is never nil and says which. Errors: *RequestError, *placement.SizeCapError (nothing was written),
// *ExistsError, *LostError, *NotReadyError, the cause of ctx's end, or the server's own; each in an *UndeletedError when what never ran is still
// there.
func Provision(ctx context.Context, cfg *rest.Config, request Request, opts Options) (*Provisioned, error) {
	p := &Provisioned{tell: oneAtATime(opts.Events)}
	if err := check(request, opts.Sizes); err != nil {
		return p, err
	}
	var err error
	if p.client, err = connect(cfg, request.Sandbox.Namespace); err != nil {
		return p, err
	}
	p.about = About{Sandbox: request.Sandbox.Name, Child: request.Sandbox.Annotations[v1alpha1.AnnotationChild]}
	run := &provision{Provisioned: p, request: request, opts: opts.withDefaults(), began: time.Now()}
	if err := run.do(ctx); err != nil {
		return p, run.end(ctx, err)
	}
	return p, nil
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *time.Duration
		other time.Duration
	}{{&o.ReadyBudget, ReadyBudget}, {&o.RepoBudget, RepoBudget}, {&o.LeaseEvery, LeaseEvery}, {&o.UnheededAfter, UnheededAfter}} {
		if *d.value <= 0 {
			*d.value = d.other
		}
	}
	return o
}

// check refuses what could not work, before anything is written.
func check(request Request, sizes placement.SizeRange) error {
	box := request.Sandbox
	switch {
	case box == nil:
		return &RequestError{"there is no Sandbox in the request"}
	case box.Namespace == "" || box.Spec.Image == "":
		return &RequestError{fmt.Sprintf("Sandbox %q states no namespace or no image", box.Name)}
	case len(validation.IsDNS1035Label(box.Name)) > 0: // a Service is named after it
		return &RequestError{fmt.Sprintf("%q can't be the name of a Sandbox: %s", box.Name, validation.IsDNS1035Label(box.Name)[0])}
	}
	_, err := sizes.Resolve(shareOf(box))
	return err
}

// shareOf is what the Sandbox asks for as a whole.
func shareOf(box *v1alpha1.Sandbox) placement.Share {
	var share placement.Share
	whole := box.Spec.Resources
	if box.Spec.PodResources != nil {
		whole = *box.Spec.PodResources
	}
	largest := func(name corev1.ResourceName, of corev1.ResourceRequirements) int64 {
		request, limit := of.Requests[name], of.Limits[name]
		if name == corev1.ResourceCPU {
			return max(request.MilliValue(), limit.MilliValue())
		}
		return max(request.Value(), limit.Value())
	}
	share.CPU, share.Memory = largest(corev1.ResourceCPU, whole), largest(corev1.ResourceMemory, whole)
	share.Disk = max(largest(corev1.ResourceEphemeralStorage, whole), largest(corev1.ResourceEphemeralStorage, box.Spec.Resources))
	return share
}

// oneAtATime keeps the lease, which tells from a goroutine of its own, out of another call.
func oneAtATime(events func(Event)) func(Event) {
	if events == nil {
		return func(Event) {}
	}
	var mutex sync.Mutex
	return func(e Event) {
		mutex.Lock()
		defer mutex.Unlock()
		events(e)
	}
}

// Release stops renewing the lease: the Sandbox stays until its idle timeout.
func (p *Provisioned) Release() { p.lease.stop() }

// Teardown stops renewing the lease and deletes the Sandbox and its token, and no others of their names. What is gone already is no error.
func (p *Provisioned) Teardown(ctx context.Context) error {
	p.lease.stop()
	if p.Sandbox == nil || p.Removed {
		return nil
	}
	if err := p.client.deleteSandbox(ctx, p.Sandbox); err != nil {
		return err
	}
	return p.client.deleteToken(ctx, p.about.Sandbox, p.secret, true)
}

// Watch waits until the Sandbox is lost, and returns its *LostError, or the cause of ctx's end.
func (p *Provisioned) Watch(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for seen := range p.client.follow(watching, p.about.Sandbox) {
		if seen.err != nil {
			return seen.err
		}
		if err := p.see(seen.sandbox); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// see keeps what was seen of the Sandbox, and says that it is lost.
func (p *Provisioned) see(box *v1alpha1.Sandbox) error {
	if box == nil || box.UID != p.Sandbox.UID {
		p.State = Ending
		return p.lost(ErrDeleted, "")
	}
	p.Sandbox, p.State = box, StateOf(box)
	switch p.State {
	case Ending:
		return p.lost(ErrDeleted, "")
	case Lost:
		return p.lost(ErrPodLost, joined(lossOf(box)))
	}
	return nil
}

func (p *Provisioned) lost(cause error, reason string) *LostError {
	return &LostError{Sandbox: p.about.Sandbox, Child: p.about.Child, Cause: cause, Reason: reason, After: p.Placing}
}
