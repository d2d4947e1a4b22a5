package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// A Workload names a Deployment, StatefulSet or DaemonSet.
type Workload struct {
	Kind      string // "Deployment", "StatefulSet" or "DaemonSet"
	Namespace string
	Name      string
}

// String is "Deployment demo/web".
func (w Workload) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }

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

// Bounds of a rollout where the options give none.
const (
	DefaultRolloutTimeout = 180 * time.Second
	DefaultRolloutGrace   = 10 * time.Second
)

// WaitRollout waits until the workload's rollout is complete, by the definitions of kubectl rollout status, watching it. A rollout
// that fails or exceeds the timeout is a *RolloutError with what the cluster says about it. The Status is the last one seen.
func WaitRollout(ctx context.Context, client kubernetes.Interface, w Workload, opts RolloutOptions) (Status, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultRolloutTimeout
	}
	if opts.Grace <= 0 {
		opts.Grace = DefaultRolloutGrace
	}
	src, err := workloadSource(client, w)
	if err != nil {
		return Status{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	judge := progressJudge{grace: opts.Grace}
	events := &emitter{fn: opts.Events}
	last := Status{Message: "it was not seen"}
	err = watchUntil(bounded, src, func(objs []runtime.Object) (look, error) {
		if len(objs) == 0 {
			return look{}, fmt.Errorf("%s does not exist", w)
		}
		status, again := judge.see(Ready(objs[0]), time.Now())
		if status != last {
			last = status
			events.emit(Progress{Workload: w, Status: status})
		}
		if status.Failed {
			return look{}, errRolloutFailed
		}
		return look{done: status.Done, again: again}, nil
	})
	switch {
	case err == nil:
		return last, nil
	case errors.Is(err, errRolloutFailed):
		return last, failedRollout(ctx, client, w, last.Message, nil)
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return last, failedRollout(ctx, client, w, fmt.Sprintf("timed out after %s: %s", opts.Timeout, last.Message), err)
	}
	return last, fmt.Errorf("waiting for %s: %w", w, err)
}

var errRolloutFailed = errors.New("the rollout failed")

// A progressJudge tells a failure of this rollout from one that the last rollout left behind. The same observedGeneration is not
// enough: the controller first notes the generation and clears the condition with the next status.
type progressJudge struct {
	grace time.Duration
	begun bool
	stale time.Time // when the failure that may be left behind was noted; zero when there is none
	since time.Time // when it was first seen to stand for the generation that is waited for
}

// see returns the status as it counts now, and after what time to judge it again.
func (j *progressJudge) see(s Status, now time.Time) (Status, time.Duration) {
	first := !j.begun
	j.begun = true
	if !s.Failed {
		if !s.FailedAt.IsZero() { // of an older generation
			j.stale = s.FailedAt
		}
		return s, 0
	}
	if s.FailedAt.IsZero() {
		return s, 0
	}
	if first {
		j.stale = s.FailedAt
	}
	if !s.FailedAt.Equal(j.stale) {
		return s, 0
	}
	if j.since.IsZero() {
		j.since = now
	}
	if left := j.grace - now.Sub(j.since); left > 0 {
		s.Failed = false
		return s, left
	}
	return s, 0
}

// workloadSource watches one workload with the typed client.
func workloadSource(client kubernetes.Interface, w Workload) (source, error) {
	src := source{options: named(w.Name)}
	apps := client.AppsV1()
	switch w.Kind {
	case "Deployment":
		at := apps.Deployments(w.Namespace)
		src.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) }
		src.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return at.Watch(ctx, o) }
	case "StatefulSet":
		at := apps.StatefulSets(w.Namespace)
		src.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) }
		src.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return at.Watch(ctx, o) }
	case "DaemonSet":
		at := apps.DaemonSets(w.Namespace)
		src.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) }
		src.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return at.Watch(ctx, o) }
	default:
		return source{}, fmt.Errorf("%s: a rollout has the kind Deployment, StatefulSet or DaemonSet", w)
	}
	return src, nil
}
