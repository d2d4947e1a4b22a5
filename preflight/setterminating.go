package preflight

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// terminations refuse for namespaces of the set that are being deleted: the server lets nothing new in there, whatever its kind, and the set's own
// Namespace does not keep it. What holds the namespace is told, since it may hold it for ever.
func (l *setLook) terminations() []Finding {
	var findings []Finding
	told := map[string]bool{}
	for _, o := range l.objs {
		name := o.GetNamespace()
		if o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" {
			name = o.GetName()
		}
		if namespace := l.facts.Namespaces[name]; !told[name] && leaves(namespace) {
			findings = append(findings, leaving(name, whatHolds(namespace)))
		}
		told[name] = true
	}
	return findings
}

// leaves says whether a namespace is being deleted.
func leaves(namespace *corev1.Namespace) bool {
	return namespace != nil && (namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating)
}

// whatHolds is " — " and what the namespace's own status names, or nothing.
func whatHolds(namespace *corev1.Namespace) string {
	var held []string
	for _, condition := range namespace.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			held = append(held, condition.Message)
		}
	}
	if len(held) == 0 {
		return ""
	}
	return " — " + strings.Join(held, "; ")
}

// leaving is the finding of a set that goes to a namespace that goes away.
func leaving(name, because string) Finding {
	return Finding{
		Severity: Refuse, Code: CodeNamespaceTerminating, Object: "Namespace " + name,
		Message: fmt.Sprintf("refusing: namespace %q is being deleted%s, and nothing new is let in. Wait until it is gone. Nothing was applied.", name, because),
		Fix:     AwaitDeletion(name),
	}
}
