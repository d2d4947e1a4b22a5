package jr2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/occupants"
	"jr2.dev/jr2/placement/v1alpha1"
)

// Why a namespace outlives its Instance.
const (
	whyAdopted  = "no converge made it"
	whyOccupied = "it holds what is not the instance's"
	whyKept     = "something in it says that it is to be kept"
	whyAgreed   = "what was agreed to is that it stays"
)

// A homeLook is what a removal saw of the Instance's namespace.
type homeLook struct {
	found  *occupants.Found
	others []occupants.Occupant // that stay
	kept   []occupants.Occupant // of the Instance, that stay because a mark on them says so
	// stays is why the namespace stays; empty when a converge made it and nothing of others is in it.
	stays string
}

// lookHome looks into the namespace. What is being deleted already, by whomever, stays nowhere; neither do the dependents of objects of the Instance that
// are gone, which the garbage collector takes.
func (d *down) lookHome(ctx context.Context, namespace *corev1.Namespace) (*homeLook, error) {
	found, err := occupants.In(ctx, d.cluster.config, namespace.Name, occupants.Options{Own: ownedBy(d.name, namespace.Name)})
	if err != nil {
		return nil, err
	}
	look := &homeLook{found: found}
	look.others = slices.DeleteFunc(slices.Clone(found.Others), func(o occupants.Occupant) bool {
		return o.Terminating || d.dependents[o.UID] || o.Orphan && labelledFor(o.Meta, d.name)
	})
	for _, o := range found.Own {
		if apply.KeepMark(o.Meta) != "" {
			look.kept, d.kept[o.UID] = append(look.kept, o), true
		}
	}
	switch {
	case !madeFor(namespace, d.name):
		look.stays = whyAdopted
	case len(look.others) > 0 || len(found.Unseen) > 0:
		look.stays = whyOccupied
	case len(look.kept) > 0:
		look.stays = whyKept
	}
	return look, nil
}

// told is what stays, for a person.
func (l *homeLook) told() Occupants {
	return told(&occupants.Found{Others: slices.Concat(l.kept, l.others), Unseen: l.found.Unseen})
}

// removes counts what goes: the objects of the Instance that nothing else of it owns. The record of its set goes too and is no object of it.
func (l *homeLook) removes() int {
	n := 0
	for _, o := range l.found.Own {
		if !o.Owned && !isLock(o.Ref) && !isRecord(o.Ref) && apply.KeepMark(o.Meta) == "" {
			n++
		}
	}
	return n
}

// essential are the kinds of which an Instance has objects beside those that its set lists. Whoever can't look at one of them does not know what is left.
var essential = []string{"secrets", "configmaps", "sandboxes." + v1alpha1.Group, "repos." + v1alpha1.Group}

// blind is an error when what is left of the Instance can't be known.
func (l *homeLook) blind() error {
	for _, unseen := range l.found.Unseen {
		if slices.Contains(essential, unseen.What) {
			return fmt.Errorf("look for %s of the instance: %w", unseen.What, unseen.Err)
		}
	}
	return nil
}

// strays are Sandboxes and Repos in namespaces that are no Instance's: they go with their kinds.
func (d *down) strays(ctx context.Context) (Occupants, error) {
	client, err := metadata.NewForConfig(d.cluster.config)
	if err != nil {
		return Occupants{}, err
	}
	var homes []string
	if d.namespace != nil {
		homes = append(homes, d.cluster.namespace)
	}
	for _, other := range d.result.Others {
		homes = append(homes, other.Namespace)
	}
	found := &occupants.Found{}
	for resource, kind := range map[string]string{"sandboxes": "Sandbox", "repos": "Repo"} {
		options := metav1.ListOptions{Limit: 500}
		for {
			page, err := client.Resource(v1alpha1.GroupVersion().WithResource(resource)).List(ctx, options)
			if apierrors.IsNotFound(err) {
				break // the kind is not there
			}
			if err != nil {
				return Occupants{}, fmt.Errorf("look for %s on %s: %w", resource, d.cluster.context, err)
			}
			for _, o := range page.Items {
				if !slices.Contains(homes, o.Namespace) {
					ref := occupants.Ref{Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: kind, Namespace: o.Namespace, Name: o.Name}
					found.Others = append(found.Others, occupants.Occupant{Ref: ref, UID: o.UID})
				}
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
		}
	}
	slices.SortFunc(found.Others, func(a, b occupants.Occupant) int { return strings.Compare(a.String(), b.String()) })
	return told(found), nil
}

// letGo takes the Instance's label, and the mark that a converge made it, from the Namespace: it is nobody's from then on. It comes last, so that a
// removal that was cut off finds the Instance still.
func (d *down) letGo(ctx context.Context, uid types.UID) error {
	for range namespaceAttempts {
		now, err := d.cluster.readNamespace(ctx)
		if err != nil || now == nil || now.UID != uid || now.Labels[names.LabelInstance] != d.name {
			return err
		}
		err = d.cluster.markNamespace(ctx, now, map[string]any{
			"labels": map[string]any{names.LabelInstance: nil}, "annotations": map[string]any{names.AnnotationMadeBy: nil, v1alpha1.AnnotationAllowance: nil},
		})
		if err == nil || !apierrors.IsConflict(err) {
			return ignoreNotFound(err)
		}
	}
	return fmt.Errorf("namespace %q on %s changed %d times while the label of the instance was taken from it", d.cluster.namespace, d.cluster.context, namespaceAttempts)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
