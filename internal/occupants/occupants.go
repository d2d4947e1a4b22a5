package occupants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A Ref names an object. It has the fields of apply.Ref, so that one converts to the other.
type Ref struct {
	Group     string
	Version   string
	Kind      string
	Namespace string
	Name      string
}

// String is "Deployment.apps demo/web", or "Service demo/web" for an object of the core group.
func (r Ref) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	return kind + " " + r.Namespace + "/" + r.Name
}

// An Occupant is an object that is in the namespace.
type Occupant struct {
	Ref
	// Resource is where it is read and deleted.
	Resource schema.GroupVersionResource
	UID      types.UID
	// Managers are the field managers that set more of it than its status, sorted: who made it and who changed it.
	Managers []string
	// Owned says that it has owners.
	Owned bool
	// Orphan says that it has owners and none of them is in the namespace: it is left to the garbage collector.
	Orphan bool
	// Terminating says that it is being deleted already.
	Terminating bool
	// Meta is all that was read of it.
	Meta *metav1.PartialObjectMetadata
}

// String is the Ref and who made it: "Deployment.apps demo/web (kubectl)".
func (o Occupant) String() string {
	if len(o.Managers) == 0 {
		return o.Ref.String()
	}
	return o.Ref.String() + " (" + strings.Join(o.Managers, ", ") + ")"
}

// Unseen is a kind, or a version of a group, of which nobody knows whether the namespace holds any.
type Unseen struct {
	// What is "secrets" or "jobs.batch" for a kind, "metrics.example.com/v1" for all kinds of a version of a group.
	What string
	// Forbidden says that the caller may not list it.
	Forbidden bool
	Err       error
}

func (u Unseen) String() string {
	if u.Forbidden {
		return u.What + " (may not be listed)"
	}
	return fmt.Sprintf("%s (%v)", u.What, u.Err)
}

// Found is what a namespace holds. Each list is sorted: what has no owner comes first, then by group, kind and name.
type Found struct {
	// Others are objects that are not the caller's and that nothing of the caller's owns.
	Others []Occupant
	// Own are the caller's objects, and what they own.
	Own []Occupant
	// Unseen is what could not be looked at.
	Unseen []Unseen
}

// Alone says that nothing of anybody else was found and that everything could be looked at.
func (f *Found) Alone() bool { return len(f.Others) == 0 && len(f.Unseen) == 0 }

// Options say how In works; the zero Options calls nothing the caller's own.
type Options struct {
	// Own says whether an object is the caller's. It is asked once for each identity under which the object is served. Nil says no.
	Own func(Ref, *metav1.PartialObjectMetadata) bool
	// Concurrency bounds the lists in flight; 16 when 0.
	Concurrency int
}

// pageSize is how many objects a list asks for at once.
const pageSize = 500

// In looks at a namespace. It makes one list of metadata for each namespaced kind that can be deleted: what can't be deleted is computed, and not
// kept in a namespace. A namespace that does not exist holds nothing.
//
// The Found is nil with an error. Errors are those of ctx, and of a server that does not answer or does not say what it serves.
func In(ctx context.Context, cfg *rest.Config, namespace string, opts Options) (*Found, error) {
	if opts.Concurrency <= 0 {
		opts.Concurrency = 16
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.RateLimiter = -1, nil // the server has its own fairness
	cfg.WarningHandler, cfg.WarningHandlerWithContext = rest.NoWarnings{}, nil
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	kinds, unseen, err := kindsOf(ctx, cfg, client)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, err
	}
	lists, missed := make([][]metav1.PartialObjectMetadata, len(kinds)), make([]*Unseen, len(kinds))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(opts.Concurrency)
	for i, k := range kinds {
		group.Go(func() (err error) {
			if !k.listable {
				missed[i] = &Unseen{What: k.String(), Err: errNotListable}
				return nil
			}
			lists[i], err = list(within, objects.Resource(k.resource).Namespace(namespace))
			if status := apierrors.APIStatus(nil); err != nil && within.Err() == nil && errors.As(err, &status) {
				missed[i], err = &Unseen{What: k.String(), Forbidden: apierrors.IsForbidden(err), Err: err}, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("look into namespace %q: %w", namespace, err)
	}
	for _, one := range missed {
		if one != nil {
			unseen = append(unseen, *one)
		}
	}
	slices.SortFunc(unseen, func(a, b Unseen) int { return cmp.Compare(a.What, b.What) })
	found := sorted(kinds, lists, opts.Own)
	found.Unseen = unseen
	return found, nil
}

var errNotListable = errors.New("the server lists no objects of this kind")

// list reads all pages. A list that lasted longer than the server keeps its pages begins anew, without pages.
func list(ctx context.Context, resource metadata.ResourceInterface) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := resource.List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			all, options = nil, metav1.ListOptions{}
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
