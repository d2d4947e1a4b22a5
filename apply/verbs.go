package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Verbs are what an Apply does to an object of a set, as an authorizer knows it. A hook is made, and deleted when its policy says so; whatever has
// its name before is deleted too, which needs that right only where something is there. A Secret whose values are made needs not be read: it is
// enough that it may be made. All else is looked at and written by server-side apply, which is authorized as patch, and as create where it makes
// the object.
func Verbs(o *unstructured.Unstructured) []string {
	p, _ := positionOf(o) // what is wrong with it is another's to tell
	switch {
	case p.isHook() && (p.whenSucceeded || p.whenFailed):
		return []string{"get", "create", "delete"}
	case p.isHook():
		return []string{"get", "create"}
	case RefOf(o).Kind == "Secret" && o.GetAnnotations()[MintAnnotation] != "":
		return []string{"create"}
	}
	return []string{"get", "patch", "create"}
}

// IsHook says that an object is made anew for each release, and what has its name is deleted.
func IsHook(o *unstructured.Unstructured) bool {
	p, _ := positionOf(o)
	return p.isHook()
}
