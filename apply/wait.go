package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// A Reader tells the Status of an object of a kind that it knows; false leaves it to the next one, and to Ready at last.
type Reader func(*unstructured.Unstructured) (Status, bool)

// WaitOptions say how a wait for objects works.
type WaitOptions struct {
	// Timeout bounds the wait for one object; 180 s when 0. Time in which it waits for a node or for a quota does not count.
	Timeout time.Duration
	// Waiting bounds the time in which an object waits for a node or for a quota. 0 waits until the context ends, because nobody but the
	// cluster can end it; a negative value fails at once.
	Waiting time.Duration
	// Grace is how long a failure that was there at the first look may stay before it counts; 10 s when 0.
	Grace time.Duration
	// Readers judge objects before Ready does, in this order.
	Readers []Reader
	// Events receives Unready and Waiting; nil discards.
	Events func(Event)
}

// WaitReady waits until every object is ready.
func WaitReady(ctx context.Context, cfg *rest.Config, refs []Ref, opts WaitOptions) error {
	c, err := connect(cfg, &emitter{fn: opts.Events})
	if err != nil {
		return err
	}
	return c.waitReady(ctx, refs, opts)
}

func (c *cluster) waitReady(ctx context.Context, refs []Ref, opts WaitOptions) error {
	return nil
}
