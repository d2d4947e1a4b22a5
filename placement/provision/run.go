package provision

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// provision is one call of Provision.
type provision struct {
	*Provisioned
	request Request
	opts    Options
	began   time.Time
	waits   waits
	// written is the lease as it was written with the Sandbox.
	written string
	// unsure says that nobody knows whether the Sandbox was written.
	unsure bool
	// tokenMade says that this call made the token's Secret.
	tokenMade bool
}

func (p *provision) do(ctx context.Context) error {
	placing, stop := ctx, context.CancelFunc(func() {})
	if p.opts.PlacingDeadline > 0 {
		placing, stop = context.WithTimeoutCause(ctx, p.opts.PlacingDeadline, ErrPlacingDeadline)
	}
	defer stop()
	p.State = Placing
	p.tell(Entered{About: p.about, State: Placing})
	if err := p.write(placing); err != nil {
		return p.ended(placing, err)
	}
	p.lease = p.client.hold(ctx, p.Sandbox, p.opts.LeaseEvery, func(err error) { p.tell(LeaseUnrenewed{p.about, err}) })
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	looks := p.client.follow(watching, p.about.Sandbox)
	if err := p.place(placing, looks); err != nil {
		return p.ended(placing, err)
	}
	return p.becomeReady(ctx, looks)
}

// ended gives the deadline of Placing the form of the other ends.
func (p *provision) ended(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrPlacingDeadline) {
		p.Placing = time.Since(p.began)
		return p.withWait(p.lost(ErrPlacingDeadline, ""))
	}
	return err
}

// place waits until the pod has a node.
func (p *provision) place(ctx context.Context, looks <-chan look) error {
	unheeded := time.NewTimer(p.opts.UnheededAfter)
	defer unheeded.Stop()
	for {
		select {
		case <-unheeded.C:
			if len(p.Sandbox.Status.Conditions) == 0 {
				p.tell(Unheeded{p.about, p.opts.UnheededAfter})
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case seen, open := <-looks:
			if !open {
				return context.Cause(ctx)
			}
			if placed, err := p.lookPlacing(seen); placed || err != nil {
				return err
			}
		}
	}
}

func (p *provision) lookPlacing(seen look) (placed bool, err error) {
	if seen.err != nil {
		return false, wrap(seen.err, "watch", "Sandbox", p.about.Sandbox)
	}
	if err := p.see(seen.sandbox); err != nil {
		return false, p.withWait(err)
	}
	p.Placing = time.Since(p.began)
	if p.State != Placing {
		p.waits.end(p, true)
		p.tell(Entered{About: p.about, State: Provisioning, Node: p.Sandbox.Status.Node})
		return true, nil
	}
	if invalid := meta.FindStatusCondition(p.Sandbox.Status.Conditions, v1alpha1.ConditionScheduled); invalid != nil && invalid.Reason == v1alpha1.ReasonPodInvalid {
		return false, p.lost(ErrInvalid, invalid.Message)
	}
	if wait, ok := WaitOf(p.Sandbox); ok {
		return false, p.waits.see(p, wait)
	}
	return false, nil
}

// becomeReady waits until the pod is Ready, from its placement on.
func (p *provision) becomeReady(ctx context.Context, looks <-chan look) error {
	budget := budget{ready: p.opts.ReadyBudget, repo: p.opts.RepoBudget, placed: time.Now()}
	var told Held
	for seen := (look{sandbox: p.Sandbox}); ; {
		if seen.err != nil {
			return wrap(seen.err, "watch", "Sandbox", p.about.Sandbox)
		}
		if err := p.see(seen.sandbox); err != nil {
			return err
		}
		if p.State == Ready {
			p.tell(Entered{About: p.about, State: Ready, Node: p.Sandbox.Status.Node})
			return nil
		}
		held := Held{About: p.about}
		held.Reason, held.Message = unready(p.Sandbox)
		if held != told && held.Reason != "" {
			p.tell(held)
			told = held
		}
		timer := time.NewTimer(time.Until(budget.end(repoHeld(held.Reason), time.Now())))
		var open bool
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
			return &NotReadyError{
				Sandbox: p.about.Sandbox, Child: p.about.Child, Node: p.Sandbox.Status.Node,
				Budget: time.Since(budget.placed), Reason: held.Reason, Message: held.Message,
			}
		case seen, open = <-looks:
			timer.Stop()
			if !open {
				return context.Cause(ctx)
			}
		}
	}
}

// A budget is the time that a placed pod may take to be Ready.
type budget struct {
	ready, repo time.Duration
	placed      time.Time
	// held is how long repositories were missing so far, holding says that one is, since when.
	held    time.Duration
	holding bool
	since   time.Time
}

// end is when the budget is used up: the time in which a repository is missing counts against its own budget alone.
func (b *budget) end(repoHeld bool, now time.Time) time.Time {
	switch {
	case repoHeld && !b.holding:
		b.since = now
	case !repoHeld && b.holding:
		b.held += now.Sub(b.since)
	}
	b.holding = repoHeld
	whole := b.placed.Add(max(b.repo, b.ready))
	if own := b.placed.Add(b.ready + b.held); !repoHeld && own.Before(whole) {
		return own
	}
	return whole
}

// end cleans up after a failure: what never ran goes, what ran stays, and nobody renews its lease any more.
func (p *provision) end(ctx context.Context, err error) error {
	p.lease.stop()
	p.waits.end(p, false)
	clean, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	if failed := p.clean(clean); failed != nil {
		return &UndeletedError{Err: err, Cleanup: failed}
	}
	return err
}

// cleanupTimeout bounds what is still done for a caller who has given up.
const cleanupTimeout = 30 * time.Second

func (p *provision) clean(ctx context.Context) error {
	if p.Sandbox == nil && p.unsure { // the answer to its create may have been lost
		there, err := p.client.sandboxes.Get(ctx, p.about.Sandbox, metav1.GetOptions{})
		if err == nil && p.ours(there, true) {
			p.Sandbox = there
		} else if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if p.Sandbox != nil {
		left, err := p.removeUnplaced(ctx)
		if err != nil || left {
			return err
		}
	}
	return p.removeToken(ctx)
}

// removeUnplaced deletes the Sandbox unless it ran: exactly the one that was looked at, as it was then. left says that it stays.
func (p *provision) removeUnplaced(ctx context.Context) (left bool, err error) {
	for {
		if ran(p.Sandbox) {
			return true, nil
		}
		err := persist(ctx, func() error {
			return p.client.sandboxes.Delete(ctx, p.Sandbox.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &p.Sandbox.UID, ResourceVersion: &p.Sandbox.ResourceVersion},
			})
		})
		if err == nil {
			p.Removed = true
			p.tell(Removed{p.about})
			return false, nil
		}
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if !apierrors.IsConflict(err) {
			return false, wrap(err, "delete", "Sandbox", p.Sandbox.Name)
		}
		there, err := p.client.sandboxes.Get(ctx, p.Sandbox.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && there.UID != p.Sandbox.UID {
			return false, nil
		}
		if err != nil {
			return false, wrap(err, "read", "Sandbox", p.Sandbox.Name)
		}
		p.Sandbox = there // something changed: it may have been placed
	}
}

// removeToken deletes the token of a Sandbox that was never written or never ran. One that was there before may be another's.
func (p *provision) removeToken(ctx context.Context) error {
	if !p.tokenMade && !p.Removed {
		return nil
	}
	return p.client.deleteToken(ctx, p.about.Sandbox, p.secret, p.Removed)
}

// deleteToken deletes the Secret of a token. One that is owned goes with its Sandbox too, so that the right to delete it is not needed.
func (c *client) deleteToken(ctx context.Context, sandbox string, uid types.UID, owned bool) error {
	if uid == "" {
		return nil
	}
	name := sandbox + names.TokenSuffix
	err := persist(ctx, func() error {
		return c.typed.CoreV1().Secrets(c.namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || owned && apierrors.IsForbidden(err) {
		return nil
	}
	return wrap(err, "delete", "Secret", name)
}

// deleteSandbox deletes this Sandbox and no other one of its name.
func (c *client) deleteSandbox(ctx context.Context, box *v1alpha1.Sandbox) error {
	err := persist(ctx, func() error {
		return c.sandboxes.Delete(ctx, box.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &box.UID}})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return wrap(err, "delete", "Sandbox", box.Name)
}
