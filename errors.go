package jr2

import (
	"errors"
	"fmt"

	"jr2.dev/jr2/internal/seed"
	"jr2.dev/jr2/preflight"
)

// Refusal is the error of a converge that found something wrong before it wrote; it holds the findings.
type Refusal = preflight.Refusal

// ErrDeclined says that a question was answered with no: a first contact, or where a deploy key comes from.
var ErrDeclined = errors.New("declined — nothing was changed")

// An UnansweredError says that a first contact needs an answer and nobody was there to ask.
type UnansweredError struct{ FirstContact }

func (e *UnansweredError) Error() string {
	return fmt.Sprintf(seed.FirstContactNoTTY, e.Instance, e.Context, e.What)
}

// An UnreachableError says that the API server did not answer.
type UnreachableError struct {
	Context string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("refusing: %s cannot be reached — %v. Nothing was applied.", e.Context, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// A KubeconfigError says that the kubeconfig, or the context of it that was asked for, can't be used.
type KubeconfigError struct {
	// Context is empty when the file itself can't be read.
	Context string
	Err     error
}

func (e *KubeconfigError) Error() string {
	if e.Context == "" {
		return "kubeconfig: " + e.Err.Error()
	}
	return fmt.Sprintf("kubeconfig context %q: %v", e.Context, e.Err)
}

func (e *KubeconfigError) Unwrap() error { return e.Err }

// ErrNoContext says that neither Options nor the kubeconfig name a cluster.
var ErrNoContext = errors.New("no kube context — give one with --context, or make a cluster first, for example with: kind create cluster")
