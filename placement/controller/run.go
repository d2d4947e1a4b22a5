package controller

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// Run runs the controller until ctx ends, which is no error. cfg is copied; its client-side limit on requests is lifted, because the API
// server has priority and fairness.
//
// Errors: ErrNoKinds; what the API server or the cache said when it could not start; a lost leader election.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	return errors.ErrUnsupported
}
