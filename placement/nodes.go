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

// A NodeLister lists nodes. client-go's NodeInterface is one.
type NodeLister interface {
	List(ctx context.Context, options metav1.ListOptions) (*corev1.NodeList, error)
}

// pageSize is how many nodes one request asks for: client-go's own default for lists.
const pageSize = 500

// Nodes reads all nodes of the cluster, in the API server's order. It reads in pages; when the server has forgotten the list's
// position between two pages, the whole list is read again in one request, so no node is in the result twice or missing.
//
// The error wraps the API server's, so apierrors and errors.As see it. A failed read is never "no nodes".
func Nodes(ctx context.Context, nodes NodeLister) ([]corev1.Node, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return nodes.List(ctx, options)
	})
	pages.PageSize = pageSize
	list, _, err := pages.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the cluster's nodes: %w", err)
	}
	var all []corev1.Node
	err = meta.EachListItem(list, func(object runtime.Object) error {
		node, ok := object.(*corev1.Node)
		if !ok {
			return fmt.Errorf("read the cluster's nodes: the list holds a %T", object)
		}
		all = append(all, *node)
		return nil
	})
	return all, err
}
