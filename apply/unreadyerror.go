package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
)

// An UnreadyError is one object that did not become ready, with what the cluster says about it.
type UnreadyError struct {
	Ref Ref
	// Status is the last one that counted; zero when the object was not seen.
	Status Status
	// Pending says that the object did not fail: it was still waited for when others did, or when the context ended. Then there is no
	// evidence.
	Pending bool
	// Verdict is the wait's own end: "timed out after 3m0s: 0 of 1 …", or what the cluster gave as the reason.
	Verdict   string
	Evidence  Evidence
	Diagnoses []Diagnosis
	// Err is what ended the wait beside the object itself: context.DeadlineExceeded when its time was over, an error of the API, or nil.
	Err error
}

func (e *UnreadyError) Unwrap() error { return e.Err }

// Error is headline, evidence, diagnoses and verdict, with an empty line between them; for a Pending object a line.
func (e *UnreadyError) Error() string {
	if e.Pending {
		return fmt.Sprintf("%s is not ready yet: %s", e.Ref, e.Verdict)
	}
	head := fmt.Sprintf("%s is not ready", e.Ref)
	switch w := (Workload{Kind: e.Ref.Kind, Namespace: e.Ref.Namespace, Name: e.Ref.Name}); {
	case e.Ref.Group == "apps" && makesPods(e.Ref) && e.Ref.Kind != "ReplicaSet":
		head = rolloutHead(w)
	case endsByItself(e.Ref):
		head = fmt.Sprintf("%s did not succeed", e.Ref)
	}
	return evidenceText(head, e.Evidence, e.Diagnoses, e.Verdict)
}

const (
	// waitEvidence bounds the objects whose evidence is read.
	waitEvidence = 8
	waitReaders  = 4
)

// result makes the error of a wait that is over; nil when all objects are ready.
func (w *waiter) result(ctx context.Context) error {
	items := w.unready()
	found, errs := make([]*UnreadyError, len(items)), make([]error, len(items))
	var g errgroup.Group
	g.SetLimit(waitReaders)
	for i, it := range items {
		e := &UnreadyError{Ref: it.ref, Status: it.status, Verdict: it.verdict, Err: it.cause}
		found[i] = e
		switch {
		case it.end != endFailed:
			e.Pending, e.Verdict = true, it.unseen()
		case i >= waitEvidence:
			e.Evidence.Notes = []string{fmt.Sprintf("no evidence was read: %d others failed before it", waitEvidence)}
		default:
			g.Go(func() error {
				w.cluster.evidence(ctx, it, e)
				return nil
			})
		}
	}
	_ = g.Wait()
	for i, e := range found {
		errs[i] = w.tellUnready(e)
	}
	return errors.Join(errs...)
}

func (w *waiter) tellUnready(e *UnreadyError) error {
	if w.care.tell == nil {
		return e
	}
	return w.care.tell(e)
}

// unseen is what the object waits for, or that it was not looked at.
func (it *waitItem) unseen() string {
	if it.status.Message == "" {
		return "it was not seen"
	}
	return it.status.Message
}

// interrupted makes the error of a wait whose context ended. No evidence is read: the caller wants to leave.
func (w *waiter) interrupted(ctx context.Context) error {
	errs := []error{fmt.Errorf("the wait for %d objects ended: %w", w.left(), context.Cause(ctx))}
	for _, it := range w.unready() {
		verdict := it.verdict
		if it.end != endFailed {
			verdict = it.unseen()
		}
		errs = append(errs, w.tellUnready(&UnreadyError{Ref: it.ref, Status: it.status, Pending: it.end != endFailed, Verdict: verdict, Err: it.cause}))
	}
	return errors.Join(errs...)
}

// evidence reads what the cluster says about an object that failed, and adds why its pods were refused, which may be said nowhere else.
func (c *cluster) evidence(ctx context.Context, it *waitItem, e *UnreadyError) {
	bounded, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	g := gatherer{client: c.typed, w: Workload{Kind: it.ref.Kind, Namespace: it.ref.Namespace, Name: it.ref.Name}, nodes: map[string]string{}}
	if it.obj != nil {
		g.gatherFor(bounded, it)
	}
	g.found = it.withKept(g.found)
	r := it.refused
	if r != nil && !strings.Contains(g.found.String(), r.text) {
		g.found.Owners = append(g.found.Owners, EventEvidence{Type: "Warning", Reason: failedCreate, Message: r.text, Object: r.object, At: r.at})
	}
	e.Evidence, e.Diagnoses = g.found, diagnose(g.found)
	if r != nil && r.never != nil {
		e.Diagnoses = []Diagnosis{*r.never}
	}
}
