package apply

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Set is a group of objects that live and die together. Its identity is its namespace and its name.
type Set struct {
	Name string
	// Namespace holds the inventory; objects of the set may live elsewhere or in no namespace.
	Namespace string
	// Objects are sorted by group, kind, namespace, name.
	Objects []*unstructured.Unstructured
}

// NewSet makes a Set of typed or unstructured objects, which it copies. It fills in apiVersion and kind of typed ones (the kinds of
// client-go and of apiextensions), drops status and null creation timestamps, and fails with a *SetError that lists every object
// without a kind or name, every duplicate, every label or annotation that is not a string (also of a pod template) and every
// repeated key of a list that the server merges by key (Service ports, container ports, env, …).
func NewSet(name, namespace string, objs ...runtime.Object) (*Set, error) {
	return nil, errors.ErrUnsupported
}
