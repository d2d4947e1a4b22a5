package apply

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"
)

// RemoveOptions say how Remove works.
type RemoveOptions struct {
	// Timeout bounds the wait for the objects to be gone; 60 s when 0.
	Timeout time.Duration
	// Owner, when not empty, is a label "key=value" that an object must carry to be removed; others are kept and reported so.
	Owner string
	// Events receives what happens; nil discards.
	Events func(Event)
}

// Remove deletes the objects that exist and waits until they are gone. Objects, and kinds, that do not exist are reported as Absent.
// An object that finalizers hold beyond the timeout is reported as Terminating, without an error.
func Remove(ctx context.Context, cfg *rest.Config, opts RemoveOptions, refs ...Ref) ([]ObjectResult, error) {
	return nil, errors.ErrUnsupported
}
