package jr2

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// servedAPIs looks for APIs whose own server is away.
func (c *converge) servedAPIs() preflight.Check {
	// Now, because checks run beside each other and one of them writes to c. Why a set can't be rendered is the affair of other steps.
	needed, _ := c.apisNeeded() //nolint:errcheck // as above
	server := c.cluster.client.Discovery().RESTClient()
	return preflight.NewCheck("served APIs", func(ctx context.Context) ([]preflight.Finding, error) {
		return preflight.APIServices(ctx, server, needed)
	}, preflight.CodeAPIDown)
}

// apisNeeded are those of the objects that a converge writes.
func (c *converge) apisNeeded() ([]schema.GroupVersion, error) {
	objs, err := c.outlined()
	if err != nil {
		return nil, err
	}
	classes, _, err := c.prioritySet()
	if err != nil {
		return nil, err
	}
	brought := [][]*unstructured.Unstructured{objs, classes.Objects}
	if render.ManagesOperator(c.input) {
		operator, _, err := operatorSet(c.input, c.opts.Adopt)
		if err != nil {
			return nil, err
		}
		brought = append(brought, operator.Objects)
	}
	needed := []schema.GroupVersion{{Group: "coordination.k8s.io", Version: "v1"}} // the lock
	for _, o := range slices.Concat(brought...) {
		if version := o.GroupVersionKind().GroupVersion(); !slices.Contains(needed, version) {
			needed = append(needed, version)
		}
	}
	return needed, nil
}
