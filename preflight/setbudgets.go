package preflight

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// A budget is a PodDisruptionBudget of the set with the workloads whose pods it selects.
type budget struct {
	*policyv1.PodDisruptionBudget
	object   string
	selected []*workload
}

// budgets checks the PodDisruptionBudgets of the set.
func (l *setLook) budgets() []Finding {
	var findings []Finding
	holder := map[*workload]string{}
	for _, o := range l.objs {
		if o.GetKind() != "PodDisruptionBudget" || o.GroupVersionKind().Group != "policy" {
			continue
		}
		b, err := l.budgetOf(o)
		if err != nil {
			findings = append(findings, notLooked(objectOf(o), fmt.Sprintf("%s cannot be read as what its kind says: %v", objectOf(o), err)))
			continue
		}
		if len(b.selected) == 0 {
			findings = append(findings, Finding{
				Severity: Note, Code: CodeDisruptionNone, Object: b.object, Fix: "correct its selector, or leave it out",
				Message: fmt.Sprintf("%s selects the pods of no workload of this set, so it protects none of them — correct its selector, or leave it out", b.object),
			})
			continue
		}
		for _, w := range b.selected {
			if first := holder[w]; first != "" {
				findings = append(findings, Finding{
					Severity: Warn, Code: CodeDisruptionOverlap, Object: b.object, Fix: "leave one of them out",
					Message: fmt.Sprintf("%s and %s both select the pods of %s, and the server evicts no pod that two budgets select, so a drain never ends — leave one of them out", first, b.object, w.object),
				})
			}
			holder[w] = b.object
		}
		findings = append(findings, b.never()...)
	}
	return findings
}

func (l *setLook) budgetOf(o *unstructured.Unstructured) (budget, error) {
	b := budget{PodDisruptionBudget: &policyv1.PodDisruptionBudget{}, object: objectOf(o)}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, b.PodDisruptionBudget); err != nil {
		return b, err
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector) // none selects nothing, an empty one everything
	if err != nil {
		return b, err
	}
	for _, w := range l.workloads {
		if w.namespace == o.GetNamespace() && selector.Matches(labels.Set(w.pod.Labels)) {
			b.selected = append(b.selected, w)
		}
	}
	return b, nil
}

// never warns when the budget allows no eviction even while all pods are healthy. The arithmetic is the disruption controller's: the
// replicas of all selected workloads together, and percentages rounded up, for what must stay and for what may go.
func (b budget) never() []Finding {
	expected := 0
	for _, w := range b.selected {
		if !w.scaled() {
			return nil // a drain leaves DaemonSets alone, and Jobs and pods have no number to reckon with
		}
		expected += w.replicas
	}
	allowed, rule := 0, ""
	switch {
	case expected == 0:
		return nil
	case b.Spec.MaxUnavailable != nil:
		rule = "maxUnavailable: " + b.Spec.MaxUnavailable.String()
		allowed = portion(*b.Spec.MaxUnavailable, expected, true)
	case b.Spec.MinAvailable != nil:
		rule = "minAvailable: " + b.Spec.MinAvailable.String()
		allowed = expected - portion(*b.Spec.MinAvailable, expected, true)
	default:
		return nil
	}
	if allowed > 0 {
		return nil
	}
	fix := "set maxUnavailable: 1 in place of " + rule
	if expected == 1 {
		fix += ", and 2 replicas if the service must go on during a drain"
	}
	return []Finding{{
		Severity: Warn, Code: CodeDisruptionNever, Object: b.object, Fix: fix,
		Message: fmt.Sprintf("%s never allows an eviction: %s of %s leaves none that may go, so a drain of their nodes never ends — %s", b.object, rule, plural(expected, "replica"), fix),
	}}
}
