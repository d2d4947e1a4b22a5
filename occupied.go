package jr2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/occupants"
	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/preflight"
)

// namedOccupants is how many objects of others a question, a finding or a line names.
const namedOccupants = 10

// ourManagers are the field managers under which a converge, a removal and the published Orchestrator write.
func ourManagers(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == apply.DefaultFieldManager || entry.Manager == authorityManager
}

// ownedBy says of the objects of a namespace which are an Instance's: those that carry the mark of its set, its labels, or are its lock. A mark and a
// label count only when the server notes that a manager of ours set them: whoever copies an object copies both. Sandboxes and Repos are a kind of our
// own, whose label is enough; the published Orchestrator puts none on them. What those objects own is found by its owner references.
func ownedBy(instance, namespace string) func(occupants.Ref, *metav1.PartialObjectMetadata) bool {
	set := namespace + "/" + setInstance
	return func(ref occupants.Ref, o *metav1.PartialObjectMetadata) bool {
		mark, marked := o.Annotations[apply.SetAnnotation]
		switch {
		case isLock(ref):
			return true
		case o.Labels[names.LabelInstance] != "" && o.Labels[names.LabelInstance] != instance:
			return false
		case ref.Group == v1alpha1.Group:
			return o.Labels[names.LabelInstance] == instance || byOrchestrator(ref, o)
		case ref.Group == "" && ref.Kind == "Secret" && !marked && byOrchestrator(ref, o):
			return true
		case isHarnessClaim(ref) && labelledFor(o, instance):
			return !setBy(o.ManagedFields, names.LabelInstance, func(entry metav1.ManagedFieldsEntry) bool {
				return !strings.HasSuffix(entry.Manager, "controller-manager")
			})
		case marked:
			return mark == set && setBy(o.ManagedFields, apply.SetAnnotation, ourManagers)
		}
		return labelledFor(o, instance) && setBy(o.ManagedFields, names.LabelInstance, ourManagers)
	}
}

// byOrchestrator knows what the published Orchestrator writes without the Instance's label (source: kit-contract 4.1 and 6.5): Sandboxes with a run, Repos
// with an identity, and Secrets of git tokens.
func byOrchestrator(ref occupants.Ref, o *metav1.PartialObjectMetadata) bool {
	switch ref.Kind {
	case "Sandbox":
		return o.Labels[v1alpha1.LabelRun] != "" && setBy(o.ManagedFields, v1alpha1.LabelRun, ourManagers)
	case "Repo":
		return o.Annotations[names.AnnotationIdentity] != ""
	case "Secret":
		return isGitToken(ref.Name) && slices.ContainsFunc(o.ManagedFields, ourManagers)
	}
	return false
}

// isGitToken says that the Orchestrator names the Secret of a git token so (source: kit-contract 1.6).
func isGitToken(name string) bool {
	sum, ok := strings.CutPrefix(name, "jr2-git-")
	return ok && len(sum) == 8 && strings.Trim(sum, "0123456789abcdef") == ""
}

func isLock(ref occupants.Ref) bool {
	return ref.Group == "coordination.k8s.io" && ref.Kind == "Lease" && ref.Name == lockName
}

// isRecord says that an object is the record of the Instance's set.
func isRecord(ref occupants.Ref) bool {
	return ref.Group == "" && ref.Kind == "ConfigMap" && ref.Name == apply.InventoryName(setInstance)
}

// isHarnessClaim says that a claim has a name which the StatefulSet of the Instance Harness gives. The controller of StatefulSets makes it.
func isHarnessClaim(ref occupants.Ref) bool {
	return ref.Group == "" && ref.Kind == "PersistentVolumeClaim" && strings.HasPrefix(ref.Name, strings.TrimSuffix(names.InstanceHarnessClaim, "0"))
}

func labelledFor(o *metav1.PartialObjectMetadata, instance string) bool {
	return o.Labels[names.LabelInstance] == instance && o.Labels[names.LabelManagedBy] == names.ManagedBy
}

// told makes of what was found in a namespace what a person reads.
func told(found *occupants.Found) Occupants {
	var o Occupants
	for i, other := range found.Others {
		if i == namedOccupants {
			o.More = len(found.Others) - i
			break
		}
		o.Objects = append(o.Objects, other.String())
	}
	for _, unseen := range found.Unseen {
		o.Unseen = append(o.Unseen, unseen.String())
	}
	return o
}

// othersInHome are the objects in the namespace that are not this Instance's.
func (c *converge) othersInHome(ctx context.Context) (Occupants, error) {
	found, err := occupants.In(ctx, c.cluster.config, c.cluster.namespace, occupants.Options{Own: ownedBy(c.inst.Name, c.cluster.namespace)})
	if err != nil {
		return Occupants{}, err
	}
	return told(found), nil
}

// occupied is the finding about a namespace that a first contact would adopt with what others have in it.
func (c *converge) occupied(holds Occupants) preflight.Finding {
	finding := preflight.Finding{
		Severity: preflight.Refuse, Code: preflight.CodeNamespaceOccupied, Object: "Namespace " + c.cluster.namespace,
		Message: fmt.Sprintf("refusing: namespace %q on %s is there already and holds what is not this Instance's: %s. Adopting it needs an agreement of its own",
			c.cluster.namespace, c.cluster.context, holds),
		Fix: "pass --adopt-namespace (Options.AdoptNamespace), or give a different namespace with -n",
	}
	if c.opts.AdoptNamespace {
		finding.Severity, finding.Fix = preflight.Note, ""
		finding.Message = fmt.Sprintf("namespace %q is adopted with what is in it and not this Instance's, which stays: %s", c.cluster.namespace, holds)
	}
	return finding
}

// lookInside looks into a namespace that a converge would adopt, and says what somebody has to agree to.
func (p *planning) lookInside(ctx context.Context) error {
	if !p.found.FirstContact || !p.found.There {
		return nil
	}
	holds, err := p.othersInHome(ctx)
	if err != nil || holds.None() {
		return err
	}
	p.plan.Holds = &holds
	finding := p.occupied(holds)
	switch {
	case finding.Severity == preflight.Refuse && p.whole:
		return preflight.Refused([]preflight.Finding{finding})
	case finding.Severity == preflight.Refuse: // a converge asks, or ends there
		finding.Severity = preflight.Warn
		finding.Message = fmt.Sprintf("namespace %q is there already and holds what is not this Instance's, so that adopting it needs --adopt-namespace (Options.AdoptNamespace): %s", p.cluster.namespace, holds)
	}
	p.note(finding)
	return nil
}

// An OccupiedError says that a first contact would adopt a namespace that holds objects of others, that Options.Yes does not agree to that, and that
// nobody was there to ask.
type OccupiedError struct{ FirstContact }

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("first contact: deploy instance %q to context %s (%s)? — it needs more than --yes; pass --adopt-namespace to agree, or give a different namespace with -n",
		e.Instance, e.Context, e.what())
}
