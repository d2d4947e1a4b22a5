package placement

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// A Lister lists objects of one kind. client-go's typed interfaces are such: its NodeInterface is a Lister[*corev1.NodeList].
type Lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
}

// A NodeLister lists nodes. client-go's NodeInterface is one.
type NodeLister = Lister[*corev1.NodeList]

// pageSize is how many objects one request asks for: client-go's own default for lists.
const pageSize = 500

// Nodes reads all nodes of the cluster, in the API server's order. It reads in pages; when the server has forgotten the list's
// position between two pages, the whole list is read again in one request, so no node is in the result twice or missing.
//
// The error wraps the API server's, so apierrors and errors.As see it. A failed read is never "no nodes". A cluster without a node gives a
// slice that is empty and not nil.
func Nodes(ctx context.Context, nodes NodeLister) ([]corev1.Node, error) {
	return readAll[corev1.Node](ctx, "nodes", nodes, metav1.ListOptions{})
}

// readAll reads all pages of a list; what names the objects in errors. Who manages which field is as large as the rest of an object and decides
// nothing here, so it goes with each page.
func readAll[T any, L runtime.Object](ctx context.Context, what string, lister Lister[L], options metav1.ListOptions) ([]T, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := lister.List(ctx, options)
		if err != nil {
			return page, err
		}
		return page, meta.EachListItem(page, func(object runtime.Object) error {
			if about, err := meta.Accessor(object); err == nil {
				about.SetManagedFields(nil)
			}
			return nil
		})
	})
	pages.PageSize = pageSize
	list, _, err := pages.List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's %s: %w", what, err)
	}
	all := make([]T, 0, meta.LenList(list))
	err = meta.EachListItem(list, func(object runtime.Object) error {
		item, ok := any(object).(*T)
		if !ok {
			return fmt.Errorf("read the cluster's %s: the list holds a %T", what, object)
		}
		all = append(all, *item)
		return nil
	})
	return all, err
}
