package apply

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A retrier repeats a request for one object while its failure ends by itself.
type retrier struct {
	limits Retry
	events *emitter
}

const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 5 * time.Second
)

// do runs try until it succeeds, fails for good, or the bound of its class is over. Its error is an *ObjectError, or try's own when
// that already names the object.
func (r retrier) do(ctx context.Context, ref Ref, try func(context.Context) error) error {
	var class Class
	var since time.Time
	var told string
	delay := firstDelay
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return objectError(ref, ClassCanceled, errors.Join(context.Cause(ctx), err))
		}
		if over := (final{}); errors.As(err, &over) {
			return objectError(ref, Classify(over.error), over.error)
		}
		c := Classify(err)
		if c != class {
			class, since, delay = c, time.Now(), firstDelay
		}
		limit, bounded := r.limit(c)
		pause := suggested(err, delay)
		if !c.Retryable() || bounded && time.Since(since)+pause > limit {
			return objectError(ref, c, err)
		}
		if c == ClassQuotaWait {
			if err.Error() != told {
				told = err.Error()
				r.events.emit(Waiting{Ref: ref, Reason: told, Since: since})
			}
		} else {
			r.events.emit(Retrying{Ref: ref, Class: c, Err: err, In: pause})
		}
		if err := sleep(ctx, pause); err != nil {
			return objectError(ref, ClassCanceled, err)
		}
		delay = min(delay*8/5, lastDelay)
	}
}

// A final error ends the retries, whatever its class.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// limit is the bound of a class; false when there is none.
func (r retrier) limit(c Class) (time.Duration, bool) {
	if c == ClassQuotaWait {
		return max(r.limits.Quota, 0), r.limits.Quota != 0
	}
	return r.limits.Limit, true
}

// suggested is the pause that the server asked for, else the delay with some jitter.
func suggested(err error, delay time.Duration) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return delay + rand.N(delay/4)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// objectError names the object, unless the error does so already.
func objectError(ref Ref, c Class, err error) error {
	var object *ObjectError
	var conflict *ConflictError
	var owned *OwnedError
	var unowned *UnownedError
	var fixed *ImmutableError
	if errors.As(err, &unowned) || errors.As(err, &fixed) || errors.As(err, &object) || errors.As(err, &conflict) || errors.As(err, &owned) {
		return err
	}
	return &ObjectError{Ref: ref, Class: c, Err: err}
}
