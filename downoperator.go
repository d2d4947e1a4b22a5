package jr2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/occupants"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement/controller"
)

// others are the cluster's other Instances, by the label of their namespaces.
func (d *down) others(ctx context.Context) ([]Deployment, error) {
	list, err := d.cluster.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: names.LabelInstance})
	if err != nil {
		return nil, fmt.Errorf("look for other Instances on %s: %w", d.cluster.context, err)
	}
	var others []Deployment
	for _, namespace := range list.Items {
		if namespace.Name != d.cluster.namespace && namespace.DeletionTimestamp == nil {
			others = append(others, Deployment{Instance: namespace.Labels[names.LabelInstance], Namespace: namespace.Name})
		}
	}
	return others, nil
}

// operatorThere says whether anything of the operator is left. Its namespace goes last, so it alone tells: by itself when jr2 made it, else by what is in
// it.
func (d *down) operatorThere(ctx context.Context) (bool, error) {
	namespace, err := d.operatorHome(ctx)
	if err != nil || namespace == nil || namespace.Labels[names.LabelManagedBy] != names.ManagedBy {
		return false, err
	}
	if namespace.DeletionTimestamp != nil {
		return true, nil
	}
	found, err := d.inOperatorHome(ctx)
	if err != nil {
		return false, err
	}
	return len(found.Own) > 0 || found.Alone() && labelledByUs(namespace), nil
}

func (d *down) operatorHome(ctx context.Context) (*corev1.Namespace, error) {
	home := d.cluster
	home.namespace = names.OperatorNamespace
	return home.readNamespace(ctx)
}

// inOperatorHome looks into the operator's namespace. Its own is what carries the mark of its set or its label, by the hand of jr2, and the Lease by which
// operators elect a leader.
func (d *down) inOperatorHome(ctx context.Context) (*occupants.Found, error) {
	set := names.OperatorNamespace + "/" + setOperator
	found, err := occupants.In(ctx, d.cluster.config, names.OperatorNamespace, occupants.Options{Own: func(ref occupants.Ref, o *metav1.PartialObjectMetadata) bool {
		mark, marked := o.Annotations[apply.SetAnnotation]
		switch {
		case ref.Kind == "Lease" && ref.Name == controller.DefaultLeaderElectionID:
			return true
		case marked:
			return mark == set && setBy(o.ManagedFields, apply.SetAnnotation, ourManagers)
		}
		return o.Labels[names.LabelManagedBy] == names.ManagedBy && setBy(o.ManagedFields, names.LabelManagedBy, ourManagers)
	}})
	if err != nil {
		return nil, err
	}
	found.Others = slices.DeleteFunc(found.Others, func(o occupants.Occupant) bool {
		return o.Terminating || d.operators[o.UID] || o.Orphan && o.Meta.Labels[names.LabelOperator] == names.OperatorControlPlane
	})
	return found, nil
}

// labelledByUs says that jr2 put its label on the Namespace, and not whoever made it.
func labelledByUs(namespace *corev1.Namespace) bool {
	return namespace.Labels[names.LabelManagedBy] == names.ManagedBy && setBy(namespace.ManagedFields, names.LabelManagedBy, ourManagers)
}

// operator removes what the operator's inventory lists, and what this Kit's operator consists of for the case that there is none: first
// its kinds, while it still runs and can let go of what it holds; then the rest; its namespace, which holds the inventory, last.
func (d *down) operator(ctx context.Context) error {
	if !d.all {
		return nil
	}
	refs, rendered, err := d.operatorRefs(ctx)
	if err != nil {
		return err
	}
	found, err := d.inOperatorHome(ctx)
	if err != nil {
		return err
	}
	d.operators = map[types.UID]bool{}
	for _, o := range found.Own { // with their owners gone, nothing else tells whose they were
		d.operators[o.UID] = true
	}
	var kinds, rest []apply.Ref
	for _, ref := range refs {
		switch ref.Kind {
		case "Namespace":
		case "CustomResourceDefinition":
			kinds = append(kinds, ref)
		default:
			rest = append(rest, ref)
		}
	}
	for _, refs := range [][]apply.Ref{kinds, rest} {
		if err := d.removeAll(ctx, refs, rendered); err != nil {
			return err
		}
	}
	if err := d.operatorNamespace(ctx); err != nil {
		return err
	}
	told := OperatorRemoved{}
	for _, result := range d.result.Operator {
		if result.Action != apply.Absent {
			told.Changes = append(told.Changes, Change{Action: string(result.Action), Object: result.Ref.String(), Why: result.Why})
		}
	}
	d.tell(told)
	return nil
}

// operatorRefs are what the operator may have in the cluster: what its record lists, and what is rendered of it, by their texts.
func (d *down) operatorRefs(ctx context.Context) (refs []apply.Ref, rendered map[string]bool, err error) {
	if refs, err = apply.Owned(ctx, d.cluster.client, setOperator, names.OperatorNamespace); err != nil {
		return nil, nil, err
	}
	objects, err := render.Operator(render.Input{Instance: d.inst})
	if err != nil {
		return nil, nil, err
	}
	rendered = map[string]bool{}
	for _, object := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, nil, err
		}
		ref := apply.RefOf(&unstructured.Unstructured{Object: fields})
		rendered[ref.String()] = true
		if !slices.ContainsFunc(refs, func(r apply.Ref) bool { return r.String() == ref.String() }) {
			refs = append(refs, ref)
		}
	}
	return refs, rendered, nil
}

// removeAll removes what carries the mark of the operator's set and, of what is rendered of it, what carries the label of jr2, both by the hand of jr2;
// what does not is kept and reported so. A label alone is not enough for what only the record lists: everything of jr2 has it.
func (d *down) removeAll(ctx context.Context, refs []apply.Ref, rendered map[string]bool) error {
	var listed, known []apply.Ref
	for _, ref := range refs {
		if rendered[ref.String()] {
			known = append(known, ref)
		} else {
			listed = append(listed, ref)
		}
	}
	opts := apply.RemoveOptions{Set: names.OperatorNamespace + "/" + setOperator, Timeout: d.operatorTimeout(), Events: d.tellApply}
	results, err := apply.Remove(ctx, d.cluster.config, opts, listed...)
	opts.Owner = names.LabelManagedBy + "=" + names.ManagedBy
	more, failed := apply.Remove(ctx, d.cluster.config, opts, known...)
	results, err = append(results, more...), errors.Join(err, failed)
	for _, result := range results {
		if result.Action != "" {
			d.result.Operator = append(d.result.Operator, result)
		}
	}
	if err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	for _, result := range results {
		if result.Action == apply.Terminating {
			return &HeldError{Object: result.Ref.String(), Err: &apply.ObjectError{
				Ref: result.Ref, Class: apply.ClassBeingDeleted, Err: errors.New(result.Why),
			}}
		}
	}
	return nil
}

func (d *down) operatorNamespace(ctx context.Context) error {
	ref := apply.Ref{Version: "v1", Kind: "Namespace", Name: names.OperatorNamespace}
	result := apply.ObjectResult{Ref: ref, Action: apply.Absent}
	namespace, err := d.cluster.client.CoreV1().Namespaces().Get(ctx, names.OperatorNamespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read namespace %q on %s: %w", names.OperatorNamespace, d.cluster.context, err)
	case namespace.Labels[names.LabelManagedBy] != names.ManagedBy:
		result = apply.ObjectResult{Ref: ref, UID: string(namespace.UID), Action: apply.Kept, Why: "it does not carry the label of jr2"}
	default:
		why, err := d.keepOperatorHome(ctx, namespace)
		if err != nil {
			return err
		}
		if why != "" {
			result = apply.ObjectResult{Ref: ref, UID: string(namespace.UID), Action: apply.Kept, Why: why}
			break
		}
		if namespace.DeletionTimestamp == nil {
			if err := d.deleteNamespace(ctx, namespace.Name, namespace.UID); err != nil {
				return err
			}
		}
		if err := d.waitGone(ctx, namespace.Name, namespace.UID); err != nil {
			return err
		}
		result = apply.ObjectResult{Ref: ref, UID: string(namespace.UID), Action: apply.Pruned}
	}
	d.result.Operator = append(d.result.Operator, result)
	return nil
}

// keepOperatorHome says why the operator's namespace stays: jr2 did not make it, or it holds what is not the operator's. Then what is left of the
// operator's own in it goes.
func (d *down) keepOperatorHome(ctx context.Context, namespace *corev1.Namespace) (why string, err error) {
	if namespace.DeletionTimestamp != nil {
		return "", nil
	}
	found, err := d.inOperatorHome(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case !labelledByUs(namespace):
		why = "jr2 did not label it"
	case !found.Alone():
		why = "it holds what is not the operator's: " + told(found).String()
	default:
		return "", nil
	}
	removed, err := d.removeExactly(ctx, found.Own)
	d.result.Operator = append(d.result.Operator, removed...)
	return why, err
}
