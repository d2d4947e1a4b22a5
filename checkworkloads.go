package jr2

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// workloads looks whether the cluster takes the pods that the Instance's own workloads will make, on which nodes they can land, which of these are too
// old for them, and which webhooks judge them. A converge would meet it, one thing after the other, when it waits for their rollouts.
func (k *checking) workloads(ctx context.Context) error {
	objs, err := k.outlined()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(k.brought, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" && !k.stays(o) }) {
		objs = append(objs, k.brought...) // an operator that stays as it is makes no pod
	}
	facts, err := preflight.SetFacts{Nodes: k.nodes}.Read(ctx, k.cluster.client)
	if err != nil {
		return err
	}
	k.facts = &facts
	classes, _, err := k.prioritySet() // which pods name, and a converge brings
	if err != nil {
		return err
	}
	admission := k.spareRunning(ctx, preflight.Admission(ctx, append(slices.Clone(objs), classes.Objects...), facts), objs)
	findings := slices.Concat(admission, preflight.NodeVersions(objs, facts), preflight.Schedulability(objs, facts),
		preflight.Webhooks(ctx, objs, facts))
	k.result.Findings = append(k.result.Findings, findings...)
	return nil
}

// outlined are the objects of the Instance and its Namespace as far as they are known before anything is made. No pod's shape depends on the
// stand-ins.
func (c *converge) outlined() ([]*unstructured.Unstructured, error) {
	home, _, err := c.namespaceSet()
	if err != nil {
		return nil, err
	}
	set, _, err := c.sketch().instanceSet()
	if err != nil {
		return nil, err
	}
	return append(home.Objects, set.Objects...), nil
}

// sketch is the converge with stand-ins for what is not known yet.
func (c *converge) sketch() *converge {
	sketch := *c
	sketch.input.Env = c.environ
	if !sketch.input.SigningKey.Present() {
		sketch.input.SigningKey = config.NewSecret(standInKey)
	}
	if sketch.input.ImageMap == "" {
		sketch.input.ImageMap = "{}"
	}
	if render.Holds(sketch.input) {
		sketch.input.Certificates = render.StandInCertificates(sketch.input)
	}
	if bundle, err := c.inst.CABundle(); err == nil { // what is wrong with it is another check's
		sketch.input.CABundle = bundle
	} else {
		sketch.input.CABundle = []byte(unreadBundle)
	}
	return &sketch
}

// namedClasses looks for the priority classes that the configuration names. A converge does not: there the first pod that names one shows it
// (source: seed, "Use the priority classes of the cluster").
func (k *checking) namedClasses(ctx context.Context) error {
	for _, named := range []struct{ field, name string }{
		{"priorityClasses.control", text(k.inst.PriorityClasses.Control)}, {"priorityClasses.sandbox", text(k.inst.PriorityClasses.Sandbox)},
	} {
		if named.name == "" {
			continue
		}
		_, err := k.cluster.client.SchedulingV1().PriorityClasses().Get(ctx, named.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			fix := fmt.Sprintf("kubectl create priorityclass %s --value=1000", named.name)
			k.note(preflight.Finding{
				Severity: preflight.Refuse, Code: preflight.CodePriorityClassMissing, Object: "PriorityClass " + named.name, Fix: fix,
				Message: fmt.Sprintf("%s names PriorityClass %q, which does not exist, so no pod that names it is made — create it, or leave the field out: %s", named.field, named.name, fix),
			})
		case apierrors.IsForbidden(err): // the pods may name it all the same
			k.note(preflight.Finding{
				Severity: preflight.Note, Code: preflight.CodeNotLookedAt, Object: "PriorityClass " + named.name,
				Message: fmt.Sprintf("nobody could look whether the PriorityClass that %s names is there: %v", named.field, err),
			})
		case err != nil:
			return fmt.Errorf("read PriorityClass %s: %w", named.name, err)
		}
	}
	return nil
}
