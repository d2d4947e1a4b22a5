package apply

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if opts.Timeout <= 0 {
		opts.Timeout = time.Minute
	}
	r, err := newRun(cfg, &Set{}, Options{Events: opts.Events, Retry: Retry{Limit: opts.Timeout}})
	if err != nil {
		return nil, err
	}
	results := make([]ObjectResult, len(refs))
	err = r.each(len(refs), func(i int) (err error) {
		results[i], err = r.removeOne(ctx, refs[i], opts)
		if err == nil {
			r.events.emit(Removed{Ref: refs[i], Action: results[i].Action, Why: results[i].Why})
		}
		return err
	})
	return results, err
}

func (r *run) removeOne(ctx context.Context, ref Ref, opts RemoveOptions) (ObjectResult, error) {
	absent := ObjectResult{Ref: ref, Action: Absent}
	at, err := r.cluster.at(ctx, ref)
	if meta.IsNoMatchError(err) {
		return absent, nil
	}
	if err != nil {
		return ObjectResult{Ref: ref}, err
	}
	now, err := r.getMeta(ctx, at, ref)
	if err != nil || now == nil {
		return absent, err
	}
	if key, value, _ := strings.Cut(opts.Owner, "="); opts.Owner != "" && now.Labels[key] != value {
		return ObjectResult{Ref: ref, UID: string(now.UID), Action: Kept, Why: "it does not carry the label " + opts.Owner}, nil
	}
	background := metav1.DeletePropagationBackground
	err = r.retry.do(ctx, ref, func(ctx context.Context) error {
		err := at.Delete(ctx, ref.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &now.UID}, PropagationPolicy: &background})
		if c := Classify(err); c == ClassNotFound || c == ClassStale { // gone, or another object has the name
			return nil
		}
		return err
	})
	if err != nil {
		return ObjectResult{Ref: ref}, err
	}
	err = waitGone(ctx, at, ref, now.UID, opts.Timeout)
	if Classify(err) == ClassBeingDeleted {
		return ObjectResult{Ref: ref, UID: string(now.UID), Action: Terminating, Why: errors.Unwrap(err).Error()}, nil
	}
	return ObjectResult{Ref: ref, UID: string(now.UID), Action: Pruned}, err
}
