package render

import (
	"jr2.dev/jr2/internal/names"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Values of the two classes. Value and policy of a PriorityClass are immutable, so they never change between versions.
const (
	controlPriority = 100000
	sandboxPriority = 1000
)

// PriorityClasses renders the classes that the configuration leaves out: jr2-control, then jr2-sandbox. All Instances of a
// cluster share them, so they carry no Instance label.
func PriorityClasses(in Input) []*schedulingv1.PriorityClass {
	var classes []*schedulingv1.PriorityClass
	if in.Instance.PriorityClasses.Control == nil {
		classes = append(classes, priorityClass(names.PriorityControl, controlPriority, corev1.PreemptLowerPriority,
			"jr2: the Orchestrator, the operator and the Repo cache"))
	}
	if in.Instance.PriorityClasses.Sandbox == nil {
		classes = append(classes, priorityClass(names.PrioritySandbox, sandboxPriority, corev1.PreemptNever,
			"jr2: Sandboxes and the Instance Harness; a pod that waits preempts none"))
	}
	return classes
}

func priorityClass(name string, value int32, policy corev1.PreemptionPolicy, description string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:         kind("scheduling.k8s.io/v1", "PriorityClass"),
		ObjectMeta:       metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelManagedBy: names.ManagedBy}},
		Value:            value,
		PreemptionPolicy: &policy,
		Description:      description,
	}
}

// controlClass names the class of the Orchestrator, the operator and the Repo cache.
func (in Input) controlClass() string {
	return named(in.Instance.PriorityClasses.Control, names.PriorityControl)
}

// operatorClass names the class of the operator.
func (in Input) operatorClass() string {
	if in.OperatorClass != "" {
		return in.OperatorClass
	}
	return in.controlClass()
}

// sandboxClass names the class of the Instance Harness; the Orchestrator gives it to Sandboxes.
func (in Input) sandboxClass() string {
	return named(in.Instance.PriorityClasses.Sandbox, names.PrioritySandbox)
}

func named(own *string, ours string) string {
	if own != nil {
		return *own
	}
	return ours
}
