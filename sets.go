package jr2

import (
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
)

// Names of the sets that a converge applies, each the identity of what lives and dies together.
const (
	setNamespace = "jr2-namespace"
	setPriority  = "jr2-priority-classes"
	setOperator  = "jr2-operator"
	setInstance  = "jr2-instance"
)

// What people call the sets.
const (
	layerNamespace = "namespace"
	layerPriority  = "priority classes"
	layerOperator  = "operator"
	layerInstance  = "instance"
)

// namespaceSet is the Instance's Namespace, which outlives every set.
func (c *converge) namespaceSet() (*apply.Set, apply.Options, error) {
	set, err := apply.NewSet(setNamespace, c.cluster.namespace, render.Namespace(c.input))
	return set, apply.Options{Shared: true}, err
}

// prioritySet holds the classes that the configuration leaves out; they belong to all Instances. It may be empty.
func (c *converge) prioritySet() (*apply.Set, apply.Options, error) {
	var classes []runtime.Object
	for _, class := range render.PriorityClasses(c.input) {
		classes = append(classes, class)
	}
	set, err := apply.NewSet(setPriority, c.cluster.namespace, classes...)
	return set, apply.Options{Shared: true}, err
}

// operatorSet is the operator that all Instances of the cluster share.
func operatorSet(input render.Input, adopt bool) (*apply.Set, apply.Options, error) {
	objects, err := render.Operator(input)
	if err != nil {
		return nil, apply.Options{}, err
	}
	set, err := apply.NewSet(setOperator, names.OperatorNamespace, objects...)
	return set, adopting(apply.Options{Prune: true}, adopt, map[string]string{names.LabelManagedBy: names.ManagedBy}), err
}

// adopting says which objects that are there a set may write: with adopt any that is of no set; else, beside its own, those that carry the labels which
// render gives all objects of the set, as earlier releases made them.
func adopting(opts apply.Options, adopt bool, kin map[string]string) apply.Options {
	opts.Adopt, opts.Kin = adopt, kin
	return opts
}

// instanceSet is everything that the Instance needs in its namespace; what it no longer needs is pruned.
func (c *converge) instanceSet() (*apply.Set, apply.Options, error) {
	objects, err := render.Instance(c.input)
	if err != nil {
		return nil, apply.Options{}, err
	}
	if render.NeedsRepoCache(c.input) {
		objects = append(objects, render.RepoCache(c.input)...)
	}
	if render.NeedsInstanceHarness(c.input) {
		harness, err := render.InstanceHarness(c.input)
		if err != nil {
			return nil, apply.Options{}, err
		}
		objects = append(objects, harness...)
	}
	kept, err := c.warmObjects()
	if err != nil {
		return nil, apply.Options{}, err
	}
	objects = append(objects, kept...)
	set, err := apply.NewSet(setInstance, c.cluster.namespace, objects...)
	return set, adopting(apply.Options{Prune: true, PruneData: c.heldObjects()}, c.opts.Adopt, c.labels()), err
}
