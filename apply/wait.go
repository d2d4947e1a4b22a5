package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// A Reader tells the Status of an object of a kind that it knows; false leaves it to the next one, and to Ready at last. It must not
// change the object.
type Reader func(*unstructured.Unstructured) (Status, bool)

// WaitOptions say how a wait for objects works; the zero WaitOptions is ready for use.
type WaitOptions struct {
	// Timeout bounds the wait for one object; 180 s when 0. Time in which it waits for a node, for a quota or at a gate does not count.
	Timeout time.Duration
	// Waiting bounds the time in which an object waits for a node, for a quota or at a gate. 0 waits until the context ends, because
	// nobody but the cluster can end it; a negative value fails at once.
	Waiting time.Duration
	// Grace is how long a failure that was there at the first look may stay before it counts, and a refusal that may still end by itself:
	// an account that is not there yet, a webhook that says no. 10 s when 0.
	Grace time.Duration
	// Readers judge objects before Ready does, in this order. Secrets are never shown to them.
	Readers []Reader
	// Events receives Unready and Waiting, one call at a time; nil discards. The last Unready of an object that became ready has a Status
	// that is Done; one that is ready at the first look has none, unless there is a Note.
	Events func(Event)
}

func (o WaitOptions) withDefaults() WaitOptions {
	if o.Timeout <= 0 {
		o.Timeout = DefaultRolloutTimeout
	}
	if o.Grace <= 0 {
		o.Grace = DefaultRolloutGrace
	}
	return o
}

// WaitReady waits until every object is ready, by opts.Readers and Ready, watching one list for each kind and namespace. Objects of kinds
// that have no status are taken to be ready without a look, unless there are Readers. A PersistentVolumeClaim whose class binds it for
// its first pod is ready too.
//
// An object whose pods wait for a node, for a quota with room in principle or at a scheduling gate is not late, and no failure of its own
// progress deadline counts: see WaitOptions.Waiting. Pods that are refused for good (a quota that is too small for one, Pod Security, a
// missing PriorityClass, a LimitRange) fail their object at once, as does an object that is deleted, but a Job or Pod that was seen to
// succeed before.
//
// The wait ends when all are ready, or a moment after the first one failed for good, so that others which fail for the same cause are
// told with it. The error joins an *UnreadyError for each object that is not ready: first those that failed, with evidence, then those that
// were only waited for still. When the context ends, its cause is in the error.
func WaitReady(ctx context.Context, cfg *rest.Config, refs []Ref, opts WaitOptions) error {
	c, err := connect(cfg, &emitter{fn: opts.Events})
	if err != nil {
		return err
	}
	return c.waitReady(ctx, refs, opts)
}

func (c *cluster) waitReady(ctx context.Context, refs []Ref, opts WaitOptions) error {
	return c.waitWith(ctx, refs, opts, care{})
}

// A care is what a wait for a wave needs beyond WaitOptions; the zero care needs nothing.
type care struct {
	limits map[Ref]time.Duration     // by key: bounds of single objects, where they are longer than WaitOptions.Timeout
	ready  func(Ref)                 // is told of each object that is ready, one call at a time, and must not block
	tell   func(*UnreadyError) error // makes the error about an object
}

func (c *cluster) waitWith(ctx context.Context, refs []Ref, opts WaitOptions, how care) error {
	w := newWaiter(c, refs, opts.withDefaults())
	w.care = how
	for _, ref := range w.atOnce {
		w.tellReady(ref)
	}
	if len(w.items) == 0 {
		return nil
	}
	return w.run(ctx)
}

// status is an object's status by the readers, else by Ready; told says that a reader knew it. Secrets are not shown to readers.
func (o WaitOptions) status(u *unstructured.Unstructured) (s Status, told bool) {
	if (order{ref: RefOf(u)}).isSecret() {
		return Ready(u), false
	}
	for _, read := range o.Readers {
		if s, ok := read(u); ok {
			return s, true
		}
	}
	return Ready(u), false
}
