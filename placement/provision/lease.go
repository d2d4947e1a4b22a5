package provision

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/placement/v1alpha1"
)

// Lease renews the lease of a Sandbox (the annotation jr2.dev/keepalive) now, and then every LeaseEvery give or take a fifth, until ctx
// ends. Provision does that for the Sandboxes that it brings; this is for one that another process brought. every replaces LeaseEvery; 0
// means LeaseEvery.
//
// failed hears of each renewal that did not work, and may be nil; the next one is tried sooner. The error is a *LostError that matches
// ErrDeleted when this Sandbox is gone, whatever else has its name now; else the cause of ctx's end.
func Lease(ctx context.Context, cfg *rest.Config, box *v1alpha1.Sandbox, every time.Duration, failed func(error)) error {
	c, err := connect(cfg, box.Namespace)
	if err != nil {
		return err
	}
	if every <= 0 {
		every = LeaseEvery
	}
	if failed == nil {
		failed = func(error) {}
	}
	return c.keep(ctx, box, 0, every, failed)
}

// keep renews after the first delay, and then every so often.
func (c *client) keep(ctx context.Context, box *v1alpha1.Sandbox, delay, every time.Duration, failed func(error)) error {
	for tries := 0; ; {
		if !pause(ctx, delay) {
			return context.Cause(ctx)
		}
		err := c.renew(ctx, box)
		switch {
		case err == nil:
			tries, delay = 0, around(every)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case apierrors.IsNotFound(err) || anotherUID(err):
			return &LostError{Sandbox: box.Name, Child: box.Annotations[v1alpha1.AnnotationChild], Cause: ErrDeleted}
		default:
			failed(err)
			tries++
			delay = min(around(every), around(time.Duration(tries)*every/20))
		}
	}
}

// anotherUID says that a patch was meant for another object of the name: the server finds that a UID can't be changed, or calls it a conflict.
func anotherUID(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// around spreads renewals, so that many leases of one start do not come due together for ever.
func around(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// A lease is renewed in the background until it is stopped.
type lease struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (c *client) hold(ctx context.Context, box *v1alpha1.Sandbox, every time.Duration, failed func(error)) *lease {
	ctx, cancel := context.WithCancel(ctx)
	l := &lease{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		// A Sandbox that is gone is told by the one who watches it.
		c.keep(ctx, box, around(every), every, failed) //nolint:errcheck // as said
	}()
	return l
}

// stop ends the renewals and waits until none is under way. A lease that was never held is stopped.
func (l *lease) stop() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.done
}

// pause waits, or says false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
