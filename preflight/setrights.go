package preflight

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// SetRightsOptions say what is done with a set beside writing its objects. The zero value asks for what a server-side apply needs.
type SetRightsOptions struct {
	// Verbs says what is done to an object. nil means SetVerbs for all.
	Verbs func(o *unstructured.Unstructured) []string
	// Unchanged says of an object that is there that it is not written, because it is as asked for. It is asked only when the right to write it is
	// missing. nil means that all are written.
	Unchanged func(live, asked *unstructured.Unstructured) bool
	// Leaving are objects that are deleted where they are there; kind, version, namespace and name suffice.
	Leaving []*unstructured.Unstructured
	// Seen are objects that are looked at and left alone.
	Seen []*unstructured.Unstructured
	// Also is what else is needed, such as the right to keep a lock.
	Also []Need
}

// SetVerbs are what a server-side apply does to an object: it looks at it and patches it; a patch that makes the object is authorized as create too
// (source: apiserver, endpoints/handlers/patch.go).
func SetVerbs() []string { return []string{"get", "patch", "create"} }

// SetRights asks whether the caller may bring a set of objects into the cluster: each object with the verbs and the scope that its kind has, where
// a kind that arrives with the set is known from its definition, and each role and binding by what it grants. The findings are those of Rights, and a
// Note for a kind that nobody serves. Nothing is written: roles and bindings are written by dry run.
func SetRights(ctx context.Context, client kubernetes.Interface, objs []*unstructured.Unstructured, opts SetRightsOptions) ([]Finding, error) {
	if all, err := MayAll(ctx, client.AuthorizationV1()); err != nil || all {
		return nil, err
	}
	needs, grants, notes, err := SetNeeds(ctx, client, objs, opts)
	if err != nil {
		return notes, err
	}
	findings, err := Rights(ctx, client.AuthorizationV1(), WhoAmI(ctx, client), needs, grants)
	return append(findings, notes...), err
}

// WhoAmI is the caller as the server knows it; "" where the server does not say.
func WhoAmI(ctx context.Context, client kubernetes.Interface) string {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return strings.TrimSpace(review.Status.UserInfo.Username)
}

// SetNeeds are what SetRights asks for: rights, and what roles and bindings grant, of which MinimalRoles makes roles.
func SetNeeds(ctx context.Context, client kubernetes.Interface, objs []*unstructured.Unstructured, opts SetRightsOptions) ([]Need, []Grant, []Finding, error) {
	scopes := scopes{ctx: ctx, client: client, arriving: arriving(objs), served: map[schema.GroupVersion]map[string]metav1.APIResource{}}
	needs := slices.Clone(opts.Also)
	var notes []Finding
	add := func(o *unstructured.Unstructured, verbs []string, unless map[string]func(live *unstructured.Unstructured) bool) error {
		resource, namespaced, err := scopes.of(o.GroupVersionKind())
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			notes = append(notes, notLooked(objectOf(o), fmt.Sprintf("nobody could ask whether %s may be written: %v", objectOf(o), err)))
			return nil
		}
		namespace := ""
		if namespaced {
			namespace = o.GetNamespace()
		}
		for _, need := range Needs(objectOf(o), resource.Group, resource.Resource, namespace, o.GetName(), verbs...) {
			if look := unless[need.Verb]; look != nil {
				need.Unless = Unless(client, resource, namespace, o.GetName(), look)
			}
			needs = append(needs, need)
		}
		return nil
	}
	for _, o := range objs {
		verbs := SetVerbs()
		if opts.Verbs != nil {
			verbs = opts.Verbs(o)
		}
		unless := map[string]func(*unstructured.Unstructured) bool{"create": func(live *unstructured.Unstructured) bool { return live != nil }}
		if opts.Unchanged != nil {
			unless["patch"] = func(live *unstructured.Unstructured) bool { return live != nil && opts.Unchanged(live, o) }
		}
		if err := add(o, verbs, unless); err != nil {
			return nil, nil, notes, err
		}
	}
	for _, o := range opts.Leaving {
		gone := map[string]func(*unstructured.Unstructured) bool{"delete": func(live *unstructured.Unstructured) bool { return live == nil }}
		if err := add(o, []string{"get", "delete"}, gone); err != nil {
			return nil, nil, notes, err
		}
	}
	for _, o := range opts.Seen {
		if err := add(o, []string{"get"}, nil); err != nil {
			return nil, nil, notes, err
		}
	}
	grants, err := Grants(ctx, client, objs)
	return needs, grants, notes, err
}

// A scopes knows the resources of kinds, and whether they live in namespaces, from discovery; each version of a group is asked for once.
type scopes struct {
	ctx      context.Context
	client   kubernetes.Interface
	arriving map[schema.GroupVersionKind]metav1.APIResource
	served   map[schema.GroupVersion]map[string]metav1.APIResource
}

var errUnserved = errors.New("nobody serves its kind yet")

func (s scopes) of(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	gv := gvk.GroupVersion()
	found, ok := s.arriving[gvk]
	if !ok {
		kinds, err := s.kinds(gv)
		if err != nil {
			return schema.GroupVersionResource{}, false, err
		}
		if found, ok = kinds[gvk.Kind]; !ok {
			return schema.GroupVersionResource{}, false, errUnserved
		}
	}
	return gv.WithResource(found.Name), found.Namespaced, nil
}

func (s scopes) kinds(gv schema.GroupVersion) (map[string]metav1.APIResource, error) {
	if kinds, asked := s.served[gv]; asked {
		return kinds, nil
	}
	list, err := s.client.Discovery().ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		list, err = &metav1.APIResourceList{}, nil
	}
	if err != nil {
		return nil, err
	}
	kinds := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			kinds[r.Kind] = r
		}
	}
	s.served[gv] = kinds
	return kinds, nil
}

// arriving are the kinds that the set defines.
func arriving(objs []*unstructured.Unstructured) map[schema.GroupVersionKind]metav1.APIResource {
	kinds := map[schema.GroupVersionKind]metav1.APIResource{}
	for _, o := range objs {
		if o.GroupVersionKind().Group != "apiextensions.k8s.io" || o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(o.Object, path...) //nolint:errcheck // the server refuses it in its own words
			return value
		}
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions") //nolint:errcheck // as above
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			name, _ := fields["name"].(string)
			kinds[schema.GroupVersionKind{Group: text("spec", "group"), Version: name, Kind: text("spec", "names", "kind")}] = metav1.APIResource{
				Name: text("spec", "names", "plural"), Namespaced: text("spec", "scope") == "Namespaced"}
		}
	}
	return kinds
}

// Unless makes a Need's Unless of what is there: unneeded is given the object, or nil where there is none.
func Unless(client kubernetes.Interface, resource schema.GroupVersionResource, namespace, name string, unneeded func(live *unstructured.Unstructured) bool) func(context.Context) (bool, error) {
	path := []string{"/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/api", resource.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	path = append(path, resource.Resource, name)
	return func(ctx context.Context) (bool, error) {
		server := client.Discovery().RESTClient()
		if server == nil || reflect.ValueOf(server).IsNil() {
			return false, errors.New("this client is of no server") // one of a test
		}
		raw, err := server.Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return unneeded(nil), nil
		}
		if err != nil {
			return false, err
		}
		live := &unstructured.Unstructured{}
		if err := live.UnmarshalJSON(raw); err != nil {
			return false, err
		}
		return unneeded(live), nil
	}
}
