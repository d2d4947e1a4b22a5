package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// AnnotationAllowance, on a Namespace, is an Allowance as JSON. Whoever may edit what is in a namespace may not edit the Namespace itself, so
// it is out of reach of who writes Sandboxes there.
const AnnotationAllowance = Domain + "/sandbox-allowance"

// An Allowance says where the Sandboxes of a namespace may run and before whom: what the configuration of its Instance gives them. Each asks for
// just that, or for less.
//
// +kubebuilder:object:generate=false
type Allowance struct {
	PriorityClassName string              `json:"priorityClassName,omitempty"`
	NodeSelector      map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations       []corev1.Toleration `json:"tolerations,omitempty"`
}

// maxAllowance bounds the annotation, in bytes.
const maxAllowance = 64 << 10

// ParseAllowance reads the annotation of a Namespace; nil where there is none.
func ParseAllowance(annotations map[string]string) (*Allowance, error) {
	text, ok := annotations[AnnotationAllowance]
	if !ok {
		return nil, nil
	}
	allowance := new(Allowance)
	if len(text) > maxAllowance {
		return nil, fmt.Errorf("the annotation %s has more than %d bytes", AnnotationAllowance, maxAllowance)
	}
	if err := json.Unmarshal([]byte(text), allowance); err != nil {
		return nil, fmt.Errorf("the annotation %s: %w", AnnotationAllowance, err)
	}
	return allowance, nil
}

// String is the value of the annotation.
func (a Allowance) String() string {
	text, err := json.Marshal(a)
	if err != nil {
		return "{}" // texts and numbers alone
	}
	return string(text)
}

// Exceeded lists what a Sandbox asks for beyond the allowance, each with its field. A nil Allowance, of a namespace that has none, allows what no
// administrator would mind: any class but the system's, tolerations that name what they tolerate but the control plane, and no single node.
func (a *Allowance) Exceeded(spec *SandboxSpec) []string {
	var over []string
	beyond := func(field, format string, args ...any) { over = append(over, field+": "+fmt.Sprintf(format, args...)) }
	switch class := spec.PriorityClassName; {
	case class == "":
	case a == nil && strings.HasPrefix(class, "system-"):
		beyond("spec.priorityClassName", "%q is a class of the system", class)
	case a != nil && class != a.PriorityClassName:
		beyond("spec.priorityClassName", "%q is not the class of this Instance's Sandboxes (%q)", class, a.PriorityClassName)
	}
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		value := spec.NodeSelector[key]
		allowed, ok := map[string]string(nil)[key], false
		if a != nil {
			allowed, ok = a.NodeSelector[key]
		}
		switch {
		case ok && allowed == value, key == corev1.LabelArchStable, key == corev1.LabelOSStable:
		case key == corev1.LabelHostname:
			beyond("spec.nodeSelector", "%s chooses a single node", key)
		case a != nil:
			beyond("spec.nodeSelector", "%s=%s is not in the configuration of this Instance", key, value)
		}
	}
	for i, toleration := range spec.Tolerations {
		field := fmt.Sprintf("spec.tolerations[%d]", i)
		switch {
		case a != nil && slices.ContainsFunc(a.Tolerations, func(allowed corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(allowed, toleration)
		}):
		case toleration.Key == "":
			beyond(field, "without a key it tolerates every taint")
		case a != nil:
			beyond(field, "%s is not in the configuration of this Instance", toleration.Key)
		case strings.HasPrefix(toleration.Key, "node-role.kubernetes.io/"):
			beyond(field, "%s is a taint of the control plane", toleration.Key)
		}
	}
	return over
}
