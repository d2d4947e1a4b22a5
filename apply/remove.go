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
	// Owner, when not empty, is a label "key=value", and Set the ID of a set: an object must carry the label or the set's mark to be removed, and the
	// server must note that this engine set it. Others are kept and reported so. With neither all are removed.
	Owner string
	Set   string
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

// whyNotOurs says why an object is not one to remove; "" when it is.
func (o RemoveOptions) whyNotOurs(now metav1.Object) string {
	key, value, _ := strings.Cut(o.Owner, "=")
	labelled := o.Owner != "" && now.GetLabels()[key] == value
	marked := o.Set != "" && now.GetAnnotations()[SetAnnotation] == o.Set
	switch {
	case o.Owner == "" && o.Set == "":
		return ""
	case marked && wrote(now, markField, DefaultFieldManager), labelled && wrote(now, `"f:`+key+`":{}`, DefaultFieldManager):
		return ""
	case marked || labelled:
		return "somebody else wrote that it is one to remove (" + strings.Join(fewOf(managersOf(now)), ", ") + ")"
	case o.Owner == "":
		return "it does not carry the mark of the set " + o.Set
	}
	return "it does not carry the label " + o.Owner
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
	if why := opts.whyNotOurs(now); why != "" {
		return ObjectResult{Ref: ref, UID: string(now.UID), Action: Kept, Why: why}, nil
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
