package apply

import (
	"encoding/base64"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// A Set is a group of objects that live and die together. Its identity is its namespace and its name.
type Set struct {
	Name string
	// Namespace holds the inventory; objects of the set may live elsewhere or in no namespace.
	Namespace string
	// Objects are sorted by group, kind, namespace, name.
	Objects []*unstructured.Unstructured

	origins map[Ref]string // where the manifests of objects that were read stand, by key
	reading reading        // of a set that Read made of directories
}

// ID is the identity of the set as its objects carry it: "<namespace>/<name>".
func (s *Set) ID() string { return s.Namespace + "/" + s.Name }

// NewSet makes a Set of typed or unstructured objects, or lists of them, which it copies. It fills in apiVersion and kind of typed
// ones (the kinds of client-go and of apiextensions), drops what only the server writes (status, null creation timestamps, uid,
// resourceVersion, generation, managedFields), and fails with a *SetError that lists every object without a kind or name, every
// duplicate, every label or annotation that is not a string (also of a pod template) and every repeated key of a list that the server
// merges by key (Service ports, container ports, env, …). stringData of a Secret becomes data; an empty selector of a Job is left out.
// Annotations that say the place of an object in the order (WaveAnnotation, HookAnnotation) must be understood; objects that Argo CD is told
// to skip are left out.
func NewSet(name, namespace string, objs ...runtime.Object) (*Set, error) {
	lists, errs := make([][]*unstructured.Unstructured, len(objs)), make([]error, len(objs))
	_ = onAllProcessors(len(objs), func(i int) error {
		lists[i], errs[i] = unstructuredOf(objs[i])
		return nil
	})
	var docs []document
	var problems []Problem
	for i, o := range objs {
		if errs[i] != nil {
			problems = append(problems, Problem{Text: fmt.Sprintf("object %d (%T): %v", i+1, o, errs[i])})
		}
		for _, u := range lists[i] {
			docs = append(docs, document{object: u})
		}
	}
	return newSet(name, namespace, docs, problems)
}

// newSet checks the objects together and sorts them.
func newSet(name, namespace string, docs []document, problems []Problem) (*Set, error) {
	checked := make([]checkup, len(docs))
	_ = onAllProcessors(len(docs), func(i int) error {
		checked[i] = checkUp(docs[i])
		return nil
	})
	problems = append(problems, findDuplicates(docs, checked)...)
	var kept []checkup
	for _, c := range checked {
		problems = append(problems, c.problems...)
		if !c.skip {
			kept = append(kept, c)
		}
	}
	if len(problems) > 0 {
		return nil, &SetError{Problems: problems}
	}
	slices.SortFunc(kept, func(a, b checkup) int { return compareRefs(a.ref, b.ref) })
	set := &Set{Name: name, Namespace: namespace}
	for _, c := range kept {
		set.Objects = append(set.Objects, c.object)
		if c.origin != "" {
			if set.origins == nil {
				set.origins = map[Ref]string{}
			}
			set.origins[c.ref.key()] = c.origin
		}
	}
	return set, nil
}

// A checkup is what can be said of an object by itself.
type checkup struct {
	object   *unstructured.Unstructured
	origin   string
	ref      Ref
	problems []Problem
	skip     bool // it is not for us
}

func checkUp(d document) checkup {
	c := checkup{object: d.object, origin: d.origin, ref: RefOf(d.object)}
	for _, f := range checkObject(d.object) {
		c.problems = append(c.problems, Problem{Origin: d.origin, Ref: c.ref, Path: f.path, Text: f.text})
	}
	p, _ := positionOf(d.object)
	c.skip = p.skip
	return c
}

// findDuplicates names each object that is in the set more than once, with the places of both.
func findDuplicates(docs []document, checked []checkup) []Problem {
	var problems []Problem
	seen := map[Ref]int{}
	for i, d := range docs {
		ref := checked[i].ref
		if ref.Name == "" && d.object.GetGenerateName() != "" {
			problems = append(problems, Problem{Origin: d.origin, Ref: ref, Path: "metadata.generateName", Text: fmt.Sprintf("object %d needs a name of its own, by which the next run finds it; a hook is made anew for each release all the same", i+1)})
			continue
		}
		if ref.Kind == "" || ref.Version == "" || ref.Name == "" {
			problems = append(problems, Problem{Origin: d.origin, Ref: ref, Text: fmt.Sprintf("object %d has no apiVersion, kind or name", i+1)})
			continue
		}
		first, ok := seen[ref.key()]
		switch {
		case ok && d.origin != "":
			problems = append(problems, Problem{Origin: d.origin, Ref: ref, Text: "it is in the set already, from " + docs[first].origin})
		case ok:
			problems = append(problems, Problem{Ref: ref, Text: fmt.Sprintf("object %d is object %d again (%s and %s)", i+1, first+1, checked[first].ref, ref)})
		default:
			seen[ref.key()] = i
		}
	}
	return problems
}

// unstructuredOf copies an object through JSON, so that only JSON's own types remain: a Go int inside an unstructured object would
// panic when it is copied. A list yields its items.
func unstructuredOf(o runtime.Object) ([]*unstructured.Unstructured, error) {
	if meta.IsListType(o) {
		items, err := meta.ExtractList(o)
		if err != nil {
			return nil, err
		}
		var all []*unstructured.Unstructured
		for _, item := range items {
			list, err := unstructuredOf(item)
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
		return all, nil
	}
	gvk, err := kindOf(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if u.Object, err = copyThroughJSON(o); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(gvk)
	dropServerFields(u.Object)
	if gvk.Group == "batch" {
		dropEmptySelector(u.Object)
	}
	if gvk.Group == "" && gvk.Kind == "Secret" {
		foldStringData(u.Object)
	}
	return []*unstructured.Unstructured{u}, nil
}

func copyThroughJSON(o runtime.Object) (map[string]any, error) {
	var source any = o
	if u, ok := o.(*unstructured.Unstructured); ok {
		if same, ok := jsonCopyMap(u.Object); ok {
			return same, nil
		}
		source = u.Object
	}
	raw, err := utiljson.Marshal(source)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	err = utiljson.Unmarshal(raw, &object)
	return object, err
}

// kindOf reads the kind from the object itself, else from the Go type.
func kindOf(o runtime.Object) (schema.GroupVersionKind, error) {
	if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Kind != "" && gvk.Version != "" {
		return gvk, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if runtime.IsNotRegisteredError(err) {
		crds := runtime.NewScheme()
		if err := apiextensionsv1.AddToScheme(crds); err != nil {
			return schema.GroupVersionKind{}, err
		}
		kinds, _, err = crds.ObjectKinds(o)
	}
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("it states no apiVersion and kind, and its Go type tells none: %w", err)
	}
	return kinds[0], nil
}

// dropServerFields removes what only the server may say. A typed object always brings an empty status and null timestamps.
func dropServerFields(o map[string]any) {
	delete(o, "status")
	if m, ok := o["metadata"].(map[string]any); ok {
		for _, f := range []string{"uid", "resourceVersion", "generation", "managedFields", "selfLink", "creationTimestamp"} {
			delete(m, f)
		}
	}
	if templates, ok := dig(o, "spec", "volumeClaimTemplates").([]any); ok {
		for _, t := range templates {
			if t, ok := t.(map[string]any); ok {
				delete(t, "status")
			}
		}
	}
	dropNullTimestamps(o)
}

// dropEmptySelector removes an empty selector of a Job or of a CronJob's Jobs: the server makes one of its own, and would take the empty
// one for an attempt to change it.
func dropEmptySelector(o map[string]any) {
	for _, path := range [][]string{{"spec"}, {"spec", "jobTemplate", "spec"}} {
		spec, _ := dig(o, path...).(map[string]any)
		if s, ok := spec["selector"].(map[string]any); ok && len(s) == 0 && spec["manualSelector"] != true {
			delete(spec, "selector")
		}
	}
}

// foldStringData moves stringData of a Secret into data, as the server does. Left to the server, the fields that it notes as ours would
// be those of stringData, and a change of the real value would go unseen.
func foldStringData(secret map[string]any) {
	text, ok := secret["stringData"].(map[string]any)
	if !ok {
		return
	}
	data, ok := secret["data"].(map[string]any)
	if !ok {
		data = map[string]any{}
	}
	for k, v := range text {
		s, ok := v.(string)
		if !ok {
			return // the server's refusal says it better
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	secret["data"] = data
	delete(secret, "stringData")
}

func dropNullTimestamps(v any) {
	switch v := v.(type) {
	case map[string]any:
		if m, ok := v["metadata"].(map[string]any); ok {
			if t, ok := m["creationTimestamp"]; ok && t == nil {
				delete(m, "creationTimestamp")
			}
		}
		for _, x := range v {
			dropNullTimestamps(x)
		}
	case []any:
		for _, x := range v {
			dropNullTimestamps(x)
		}
	}
}

// dig follows keys through nested maps; nil when one is not there.
func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}
