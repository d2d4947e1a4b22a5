package preflight

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/seed"
)

// NamespaceName refuses a name that no namespace of an Instance can have, before any cluster is asked.
func NamespaceName(name string) []Finding {
	problem := ""
	switch problems := validation.IsDNS1123Label(name); {
	case len(problems) > 0:
		problem = problems[0]
	case name == names.OperatorNamespace:
		problem = "it is the home of the operator that all Instances share"
	case systemName(name) != "":
		problem = systemName(name)
	default:
		return nil
	}
	return []Finding{{
		Severity: Refuse, Code: CodeNamespaceName, Object: "Namespace " + strconv.Quote(name),
		Message: fmt.Sprintf("refusing: %q cannot be the namespace of an Instance: %s. Give another with -n. Nothing was applied.", name, problem),
		Fix:     "give a different namespace with -n",
	}}
}

// Home is what a converge would do with its namespace.
type Home struct {
	// FirstContact says that the Instance was never there: somebody must agree to What.
	FirstContact bool
	// What the first contact would do, in words.
	What string
	// There says that the namespace exists, so that the first contact adopts it. What is in it is not looked at here.
	There bool
}

// Ownership looks at the namespace as it was read; nil means that it does not exist. A namespace of another Instance, and one that is
// being deleted, refuse; so does, in a first contact, one that another tool keeps.
func Ownership(context, name, instance string, namespace *corev1.Namespace) (Home, []Finding) {
	if namespace == nil {
		return Home{FirstContact: true, What: fmt.Sprintf(seed.CreateNamespace, name)}, nil
	}
	owner := namespace.Labels[names.LabelInstance]
	switch {
	case owner != "" && owner != instance:
		return Home{}, []Finding{{
			Severity: Refuse,
			Code:     CodeNamespaceOwner,
			Object:   "Namespace " + name,
			Message:  fmt.Sprintf(seed.RefuseNamespace, name, context, owner),
			Fix:      "give a different namespace with -n, or a different context",
		}}
	case leaves(namespace):
		return Home{}, []Finding{terminating(context, namespace)}
	case owner == "":
		return Home{FirstContact: true, There: true, What: fmt.Sprintf("adopt the existing namespace %q", name)}, managed(context, instance, namespace)
	}
	return Home{}, nil
}

func terminating(context string, namespace *corev1.Namespace) Finding {
	return Finding{
		Severity: Refuse,
		Code:     CodeNamespaceTerminating,
		Object:   "Namespace " + namespace.Name,
		Message: fmt.Sprintf("refusing: namespace %q on %s is being deleted%s. Wait until it is gone, or give a different namespace with -n. Nothing was applied.",
			namespace.Name, context, whatHolds(namespace)),
		Fix: AwaitDeletion(namespace.Name),
	}
}
