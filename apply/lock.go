package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// LockOptions say how Lock works; the zero value waits for a lock of 15 s.
type LockOptions struct {
	// Fail makes Lock return a *LockedError instead of waiting for another holder.
	Fail bool
	// Duration is how long the lock outlives a holder that stops renewing it; 15 s when 0. It is renewed at a third of it.
	Duration time.Duration
	// Events receives LockHeld when it waits; nil discards.
	Events func(Event)
}

// A LockedError names who holds a lock.
type LockedError struct {
	Namespace, Name string
	Holder          string
	Since           time.Time
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s holds the lock %s/%s since %s", e.Holder, e.Namespace, e.Name, e.Since.UTC().Format(time.RFC3339))
}

// ErrLockLost is the cause of the end of a context that Lock returned, when somebody else took the lock or it could not be renewed.
var ErrLockLost = errors.New("the lock was lost")

// Lock takes the Lease namespace/name for identity, a text that tells a person who holds it ("ana@laptop"). It keeps renewing it in
// the background until release is called; the context that it returns ends with the cause ErrLockLost when that fails. The lock of a
// holder that crashed expires.
func Lock(ctx context.Context, client kubernetes.Interface, namespace, name, identity string, opts LockOptions) (held context.Context, release func(), err error) {
	return ctx, func() {}, errors.ErrUnsupported
}
