package apply

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
)

// whyDefinitionStays says why a CustomResourceDefinition is not deleted; "" when it may go, with the resources of its kind. They are in all namespaces,
// and whoever made them need not know the set.
func (r *run) whyDefinitionStays(ctx context.Context, ref Ref, in inside) (string, map[types.UID]bool, error) {
	var all []metav1.PartialObjectMetadata
	err := r.retry.do(ctx, ref, func(ctx context.Context) (err error) {
		all, err = r.resourcesOf(ctx, ref.Name)
		return err
	})
	switch {
	case Classify(err) == ClassNotFound: // it is gone, or not served yet
		return "", nil, nil
	case err != nil && ctx.Err() == nil:
		return "nobody could look whether others have resources of its kind: " + err.Error(), nil, nil
	case err != nil:
		return "", nil, err
	}
	seen := map[types.UID]bool{}
	for again := true; again; { // what belongs to a resource that goes, through any number of steps
		again = false
		for _, o := range all {
			if !seen[o.UID] && (in.takes(&o) || (inside{going: seen}).takes(&o)) {
				seen[o.UID], again = true, true
			}
		}
	}
	var holds []string
	for _, o := range all {
		if !seen[o.UID] {
			one := ref
			one.Group, one.Kind, one.Namespace, one.Name = o.GroupVersionKind().Group, o.Kind, o.Namespace, o.Name
			holds = append(holds, fmt.Sprintf("%s (%s)", one, strings.Join(managersOf(&o), ", ")))
		}
	}
	if len(holds) == 0 {
		return "", seen, nil
	}
	return "the set did not make all resources of its kind: " + strings.Join(fewOf(holds), ", "), nil, nil
}

// resourcesOf lists the resources of a definition in all namespaces, metadata only.
func (r *run) resourcesOf(ctx context.Context, name string) ([]metav1.PartialObjectMetadata, error) {
	crd, err := r.cluster.dynamic.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	kind := broughtBy(crd)
	resource := schema.GroupVersionResource{Group: kind.Group, Resource: text(dig(crd.Object, "spec", "names", "plural"))}
	versions, _ := dig(crd.Object, "spec", "versions").([]any)
	for _, v := range versions {
		if dig(v, "served") == true {
			resource.Version = text(dig(v, "name"))
			break
		}
	}
	if status, _ := condition(crd, "Established"); status != "True" {
		return nil, nil // it never served, so nobody has made one
	}
	at := r.cluster.meta.Resource(resource)
	var all []metav1.PartialObjectMetadata
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) })
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			one := *m
			one.SetGroupVersionKind(kind.GroupVersionKind())
			all = append(all, one)
		}
		return nil
	})
	return all, err
}
