package apply

import (
	"context"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/internal/occupants"
)

// An inside is what a Namespace or a CustomResourceDefinition takes along when it goes.
type inside struct {
	going map[types.UID]bool // what leaves the set too
	seen  map[types.UID]bool // what was no reason to keep it when that was last asked
}

// takes says that an object may be taken along: it goes as well, or what it belongs to does.
func (in inside) takes(o metav1.Object) bool {
	if in.going[o.GetUID()] || in.seen[o.GetUID()] {
		return true
	}
	for _, owner := range o.GetOwnerReferences() {
		if !in.going[owner.UID] && !in.seen[owner.UID] {
			return false
		}
	}
	return len(o.GetOwnerReferences()) > 0
}

// judgeWhole keeps what takes along more than the set's own: Namespaces with all that is in them, definitions with all resources of their kind. It is
// asked first when the prune is judged, and again right before they go: what was to go with them may have stayed, and others may have come.
func (r *run) judgeWhole(ctx context.Context, all, some []departure) error {
	going, stays := map[types.UID]bool{}, map[types.UID]bool{}
	for _, d := range all {
		if d.now != nil {
			gone := d.action == Pruned || d.action == Terminating
			going[d.now.UID], stays[d.now.UID] = gone, !gone
		}
	}
	return r.each(len(some), func(i int) error {
		d := &some[i]
		if d.action != Pruned || d.now == nil {
			return nil
		}
		in := inside{going: going, seen: maps.Clone(d.inside)}
		maps.DeleteFunc(in.seen, func(uid types.UID, _ bool) bool { return stays[uid] })
		var why string
		var err error
		switch {
		case d.Group == "" && d.Kind == "Namespace":
			why, d.inside, err = r.whyNamespaceStays(ctx, d, in)
		case tierOf(d.Ref) == tierKinds:
			why, d.inside, err = r.whyDefinitionStays(ctx, d.Ref, in)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.Ref, err)
		}
		if why != "" {
			d.action, d.why, d.forget = Kept, why+"; to delete it with all that it holds: "+deleteCommand(d.Ref), false
		}
		return nil
	})
}

// whyNamespaceStays says why a Namespace is not deleted; "" when it may go, with what is in it.
func (r *run) whyNamespaceStays(ctx context.Context, d *departure, in inside) (string, map[types.UID]bool, error) {
	switch {
	case !r.madeIt(d.now):
		return "nothing on it shows that the set made it (" + MadeAnnotation + "), so others may use it", nil, nil
	case d.Name == r.set.Namespace && !r.opts.withdraw:
		return "it holds the record of the set", nil, nil
	}
	seen := map[types.UID]bool{}
	found, err := occupants.In(ctx, r.cluster.config, d.Name, occupants.Options{
		Concurrency: r.opts.Concurrency,
		Own: func(ref occupants.Ref, o *metav1.PartialObjectMetadata) bool {
			seen[o.UID] = true
			return in.takes(o) || r.isBookkeeping(Ref(ref), o)
		},
	})
	if err != nil {
		return "", nil, err
	}
	var holds []string
	for _, other := range found.Others {
		holds = append(holds, other.String())
	}
	holds = fewOf(holds)
	for _, unseen := range found.Unseen {
		holds = append(holds, "what nobody could look at: "+unseen.String())
	}
	if len(holds) == 0 {
		return "", seen, nil
	}
	return "it holds " + strings.Join(holds, ", "), nil, nil
}

// fewOf names the first few of what something holds.
func fewOf(holds []string) []string {
	const most = 5
	if more := len(holds) - most; more > 0 {
		return append(holds[:most:most], fmt.Sprintf("%d more", more))
	}
	return holds
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
