package narrate

import (
	"fmt"
	"strings"

	"jr2.dev/jr2/internal/event"
)

func down(e event.Event) ([]string, bool) {
	switch e := e.(type) {
	case event.DownStarted:
		and := ""
		if e.All {
			and = " and the operator"
		}
		return one("jr2 down — instance %q%s → context %s / namespace %s", e.Instance, and, e.Context, e.Namespace)
	case event.NamespaceDeleting:
		return one("namespace %s: deleted — waiting until everything in it is gone", e.Name)
	case event.NamespaceHeld:
		return one("  namespace %s waits: %s", e.Name, e.Reason)
	case event.NamespaceGone:
		return one("namespace %s: gone", e.Name)
	case event.OperatorRemoved:
		return operatorRemoved(e), true
	case event.LeftInPlace:
		return one("left in place: %s", strings.Join(e.What, "; "))
	case event.Removed:
		return one("removed — instance %q is gone from %s", e.Instance, e.Context)
	}
	return nil, false
}

func operatorRemoved(e event.OperatorRemoved) []string {
	lines := []string{fmt.Sprintf("operator: removed (%d objects)", len(e.Changes))}
	for _, change := range e.Changes {
		line := fmt.Sprintf("  %s %s", change.Object, change.Action)
		if change.Why != "" {
			line += " — " + change.Why
		}
		lines = append(lines, line)
	}
	return lines
}
