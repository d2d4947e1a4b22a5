package apply

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/internal/occupants"
)

// judgeNamespaces keeps the Namespaces that are not the set's alone: a Namespace takes along all that is in it. Each must have been made by the set
// and hold nothing but what goes as well.
func (r *run) judgeNamespaces(ctx context.Context, all []departure) error {
	going := map[types.UID]bool{}
	for _, d := range all {
		if d.now != nil && (d.action == Pruned || d.action == Terminating) {
			going[d.now.UID] = true
		}
	}
	return r.each(len(all), func(i int) error {
		d := &all[i]
		if d.Group != "" || d.Kind != "Namespace" || d.action != Pruned {
			return nil
		}
		why, err := r.whyNamespaceStays(ctx, d.record, going)
		if why != "" {
			d.action, d.why = Kept, why+"; to delete it with all that it holds: "+deleteCommand(d.Ref)
		}
		return err
	})
}

// whyNamespaceStays says why a Namespace is not deleted; "" when it may go.
func (r *run) whyNamespaceStays(ctx context.Context, rec record, going map[types.UID]bool) (string, error) {
	switch {
	case !rec.Made:
		return "the set did not make it, so others may use it", nil
	case rec.Name == r.set.Namespace && !r.opts.withdraw:
		return "it holds the record of the set", nil
	}
	found, err := occupants.In(ctx, r.cluster.config, rec.Name, occupants.Options{
		Concurrency: r.opts.Concurrency,
		Own: func(ref occupants.Ref, o *metav1.PartialObjectMetadata) bool {
			return going[o.UID] || r.isBookkeeping(Ref(ref), o)
		},
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", rec.Ref, err)
	}
	const most = 5
	var holds []string
	for _, other := range found.Others[:min(len(found.Others), most)] {
		holds = append(holds, other.String())
	}
	if more := len(found.Others) - most; more > 0 {
		holds = append(holds, fmt.Sprintf("%d more", more))
	}
	for _, unseen := range found.Unseen {
		holds = append(holds, "what nobody could look at: "+unseen.String())
	}
	if len(holds) == 0 {
		return "", nil
	}
	return "it holds " + strings.Join(holds, ", "), nil
}

// isBookkeeping says that an object of the set's own namespace is what an apply notes there: its record. A Lease is a sign that somebody works; what
// that is about is there as well.
func (r *run) isBookkeeping(ref Ref, o *metav1.PartialObjectMetadata) bool {
	switch {
	case ref.Group == "coordination.k8s.io" && ref.Kind == "Lease":
		return true
	case ref.Group != "" || ref.Kind != "ConfigMap" || o.Namespace != r.set.Namespace:
		return false
	}
	_, part := r.inv.parts[o.Name]
	return (part || o.Name == InventoryName(r.set.Name)) && o.Annotations[SetAnnotation] == r.set.ID()
}
