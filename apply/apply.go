package apply

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// Apply brings the set into the cluster: it looks at what is there, writes what differs, in order, and prunes last. It copies cfg
// and switches the client-side rate limiter off. A second Apply of an equal set writes nothing and reports no change.
//
// The Outcome is never nil. Errors are *ConflictError, *OwnedError, *ObjectError, or several of them joined: objects that can be
// applied in the same wave are, and no later wave starts.
func Apply(ctx context.Context, cfg *rest.Config, set *Set, opts Options) (*Outcome, error) {
	return &Outcome{}, errors.ErrUnsupported
}
