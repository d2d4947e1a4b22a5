package apply

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Ref names an object in a cluster.
type Ref struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Namespace is empty for an object of a cluster-scoped kind.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// RefOf returns the Ref of an object.
func RefOf(o *unstructured.Unstructured) Ref {
	k := o.GroupVersionKind()
	return Ref{Group: k.Group, Version: k.Version, Kind: k.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// GroupVersionKind returns the kind that the Ref is read and written as.
func (r Ref) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// String is "Deployment.apps demo/web", or "Namespace demo" for a cluster-scoped object of the core group.
func (r Ref) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	if r.Namespace == "" {
		return kind + " " + r.Name
	}
	return kind + " " + r.Namespace + "/" + r.Name
}

// key is the identity of the object: the version under which it is written does not belong to it.
func (r Ref) key() Ref {
	r.Version = ""
	return r
}

func (r Ref) isSecret() bool { return r.Group == "" && r.Kind == "Secret" }

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
