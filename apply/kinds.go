package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// kindsOf lists the kinds that the CustomResourceDefinitions of the set bring, as "<group>/<kind>".
func kindsOf(objs []*unstructured.Unstructured) map[string]bool {
	kinds := map[string]bool{}
	for _, o := range objs {
		if tierOf(RefOf(o)) != tierKinds {
			continue
		}
		brought := broughtBy(o)
		kinds[brought.Group+"/"+brought.Kind] = true
	}
	return kinds
}

// broughtBy is the kind that a CustomResourceDefinition defines, as a Ref without a name.
func broughtBy(crd *unstructured.Unstructured) Ref {
	return Ref{Group: text(dig(crd.Object, "spec", "group")), Kind: text(dig(crd.Object, "spec", "names", "kind"))}
}

// arrives says that a dry run can't show the object to the server, because its kind or its namespace is only in the set, or announced.
func (r *run) arrives(ref Ref) bool {
	home := Ref{Kind: "Namespace", Name: ref.Namespace}
	return r.kinds[ref.Group+"/"+ref.Kind] || r.wanted[home] && r.live.get(home) == nil || slices.Contains(r.opts.Arriving, ref.Namespace)
}

// settleKinds waits until the server serves the kinds that this run brought or changed, and forgets what it knew about kinds.
func (r *run) settleKinds(ctx context.Context, results []ObjectResult) error {
	var moved []Ref
	for _, x := range results {
		if tierOf(x.Ref) == tierKinds && (x.Action == Created || x.Action == Configured || !r.served(ctx, x.Ref)) {
			moved = append(moved, x.Ref)
		}
	}
	if len(moved) == 0 || r.opts.DryRun {
		return nil
	}
	err := r.each(len(moved), func(i int) error { return r.waitEstablished(ctx, moved[i]) })
	r.cluster.mapper.reset()
	return err
}

// served says that the mapper knows the kind of a definition of the set; a run that was cut off may have left it unready.
func (r *run) served(ctx context.Context, crd Ref) bool {
	for _, o := range r.set.Objects {
		if RefOf(o) != crd {
			continue
		}
		kind := broughtBy(o).GroupVersionKind()
		versions, _ := dig(o.Object, "spec", "versions").([]any)
		for _, v := range versions {
			if kind.Version = text(dig(v, "name")); dig(v, "served") == true {
				_, err := r.cluster.mapper.mapping(ctx, kind)
				return err == nil
			}
		}
	}
	return false
}

func (r *run) waitEstablished(ctx context.Context, crd Ref) error {
	bounded, cancel := context.WithTimeout(ctx, r.opts.Retry.Limit)
	defer cancel()
	at := r.cluster.dynamic.Resource(crdResource)
	src := source{
		options: named(crd.Name),
		list:    func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) },
		watch:   func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return at.Watch(ctx, o) },
	}
	waits := "no status yet"
	err := watchUntil(bounded, src, func(objs []runtime.Object) (look, error) {
		if len(objs) == 0 {
			return look{}, errors.New("it was deleted while it was waited for")
		}
		u, ok := objs[0].(*unstructured.Unstructured)
		if !ok {
			return look{}, nil
		}
		established, text := condition(u, "Established")
		accepted, names := condition(u, "NamesAccepted")
		if accepted == "False" {
			return look{}, fmt.Errorf("its names are not accepted: %s", names)
		}
		waits = "it is not established: " + text
		return look{done: established == "True" && accepted == "True"}, nil
	})
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s after %s", waits, r.opts.Retry.Limit)
	}
	return objectError(crd, Classify(err), err)
}

// condition returns the status and the message of a condition.
func condition(u *unstructured.Unstructured, name string) (status, message string) {
	list, _ := dig(u.Object, "status", "conditions").([]any)
	for _, c := range list {
		if dig(c, "type") == name {
			status, _ = dig(c, "status").(string)
			message, _ = dig(c, "message").(string)
		}
	}
	return status, message
}
