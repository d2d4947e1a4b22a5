package warm

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"jr2.dev/jr2/placement"
)

// AutoscalerCutoff is the priority below which the cluster autoscaler takes pods for expendable: it boots no node for them and removes their
// nodes. It is the default of its flag --expendable-pods-priority-cutoff (source: the autoscaler's questions and answers, "How does Cluster
// Autoscaler work with Pod Priority and Preemption?"). Karpenter knows no such limit.
const AutoscalerCutoff = int32(-10)

// ErrNoNamespace is the error of a Home that says no namespace.
var ErrNoNamespace = errors.New("warm: no namespace given")

// Surroundings are what somebody has read that decides whether placeholders do what they are for. nil is not known.
type Surroundings struct {
	// Class is the priority class of Sandboxes. For Sandboxes without one: a class without a name, whose value is that of the cluster's
	// default class, or 0.
	Class *schedulingv1.PriorityClass
	// Quotas of the placeholders' namespace.
	Quotas []corev1.ResourceQuota
}

// Check says what keeps placeholders from being what they are for. The errors are those of Validate and a *SandboxPriorityError; the warnings,
// which come with it too, are everything that hurts less.
func (c Capacity) Check(home Home, sandboxes Sandboxes, around Surroundings) ([]Warning, error) {
	if err := c.Validate(); err != nil || !c.On() {
		return nil, err
	}
	warnings := c.checkPriority()
	warnings = append(warnings, c.checkSize(home, sandboxes)...)
	warnings = append(warnings, c.checkQuotas(home, sandboxes, around.Quotas)...)
	if around.Class == nil {
		return warnings, nil
	}
	if around.Class.Value <= c.priority() {
		return warnings, &SandboxPriorityError{Class: around.Class.Name, Sandbox: around.Class.Value, Placeholder: c.priority()}
	}
	return append(warnings, checkPolicy(around.Class)...), nil
}

// checkPolicy warns of Sandboxes that preempt nobody: a placeholder then takes the place that it is to hold.
func checkPolicy(class *schedulingv1.PriorityClass) []Warning {
	if class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever {
		return nil
	}
	fix := "give Sandboxes a class with preemptionPolicy PreemptLowerPriority; with the value 0 it preempts nothing but placeholders, " +
		"and no pod without a class preempts a Sandbox"
	return []Warning{{
		Code: NeverPreempts, Object: "PriorityClass " + class.Name,
		Message: fmt.Sprintf("PriorityClass %s of the Sandboxes has preemptionPolicy Never, so a Sandbox waits beside placeholders instead of taking the place of one — %s", class.Name, fix),
		Fix:     fix,
	}}
}

func (c Capacity) checkPriority() []Warning {
	if c.priority() >= AutoscalerCutoff {
		return nil
	}
	return []Warning{{
		Code: Expendable, Object: "placeholders",
		Message: fmt.Sprintf("placeholders with the priority %d are expendable to the cluster autoscaler, which boots no node for a pod below %d and removes the nodes of such pods — "+
			"give them %d, or lower the autoscaler's --expendable-pods-priority-cutoff", c.priority(), AutoscalerCutoff, DefaultPriority),
		Fix: fmt.Sprintf("give placeholders the priority %d", DefaultPriority),
	}}
}

// checkSize compares with one Sandbox of the default Size.
func (c Capacity) checkSize(home Home, sandboxes Sandboxes) []Warning {
	asks := placement.Requests(placement.SandboxPod(home.Namespace, sandboxes.share(), placement.Rules{}))
	holds := placement.Requests(c.placeholder(home, sandboxes))
	var short []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		want, have := asks[name], holds[name]
		if have.Cmp(want) < 0 {
			short = append(short, fmt.Sprintf("%s %s of %s", name, have.String(), want.String()))
		}
	}
	if len(short) == 0 {
		return nil
	}
	return []Warning{{
		Code: TooSmall, Object: "placeholders",
		Message: fmt.Sprintf("one placeholder reserves less than one Sandbox asks for (%s), so a Sandbox may not fit where one goes — leave resources out, or raise them", strings.Join(short, ", ")),
		Fix:     "leave resources out",
	}}
}

// checkQuotas names quotas of the namespace that count placeholders: what those take of a quota no Sandbox gets, because a quota refuses before
// anybody is preempted.
func (c Capacity) checkQuotas(home Home, sandboxes Sandboxes, quotas []corev1.ResourceQuota) []Warning {
	pod := c.placeholder(home, sandboxes)
	pod.Namespace = home.Namespace
	var warnings []Warning
	seen := map[string]bool{}
	for _, limit := range placement.Room(pod, &placement.Facts{Quotas: quotas}, placement.RoomOptions{}).Quotas {
		if seen[limit.Name] {
			continue
		}
		seen[limit.Name] = true
		warnings = append(warnings, Warning{
			Code: CountedByQuota, Object: "ResourceQuota " + home.Namespace + "/" + limit.Name,
			Message: fmt.Sprintf("quota %s of namespace %s counts placeholders, and what they take of it no Sandbox gets: a quota refuses a Sandbox before it could take a placeholder's place — "+
				"raise the quota by %d placeholder(s), or narrow it to the Sandboxes' priority class with a scopeSelector", limit.Name, home.Namespace, c.replicas()),
			Fix: "raise the quota, or narrow it with a scopeSelector of scope PriorityClass",
		})
	}
	return warnings
}
