package apply

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"
)

// A Workload names a Deployment, StatefulSet or DaemonSet.
type Workload struct {
	Kind      string // "Deployment", "StatefulSet" or "DaemonSet"
	Namespace string
	Name      string
}

// RolloutOptions say how WaitRollout works.
type RolloutOptions struct {
	// Timeout bounds the wait; 180 s when 0.
	Timeout time.Duration
	// Grace is how long a failure that was there at the first look may stay before it counts; 10 s when 0. A failed rollout leaves
	// its condition behind, and the first status of the next one still shows it.
	Grace time.Duration
	// Events receives Progress when the state changes; nil discards.
	Events func(Event)
}

// WaitRollout waits until the workload's rollout is complete, by the definitions of kubectl rollout status, watching it. A rollout
// that fails or exceeds the timeout is a *RolloutError with what the cluster says about it. The Status is the last one seen.
func WaitRollout(ctx context.Context, client kubernetes.Interface, w Workload, opts RolloutOptions) (Status, error) {
	return Status{}, errors.ErrUnsupported
}
