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
	case event.NamespaceStays:
		return namespaceStays(e), true
	case event.InstanceRemoved:
		return removed("instance", e.Changes), true
	case event.ObjectWaiting:
		return one("  %s waits: %s", e.Object, e.Reason)
	case event.OperatorRemoved:
		return removed("operator", e.Changes), true
	case event.LeftInPlace:
		return one("left in place: %s", strings.Join(e.What, "; "))
	case event.Removed:
		return one("removed — instance %q is gone from %s", e.Instance, e.Context)
	}
	return nil, false
}

func namespaceStays(e event.NamespaceStays) []string {
	lines := []string{fmt.Sprintf("namespace %s: stays — %s", e.Name, e.Why)}
	for _, object := range e.Others.Objects {
		lines = append(lines, "  stays: "+object)
	}
	if e.Others.More > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", e.Others.More))
	}
	for _, kind := range e.Others.Unseen {
		lines = append(lines, "  nobody could look for "+kind)
	}
	return lines
}

// keptAction is the Action of a Change that removed nothing.
const keptAction = "kept"

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// removed tells what became of the objects of the Instance or of the operator.
func removed(what string, changes []event.Change) []string {
	kept := 0
	for _, change := range changes {
		if change.Action == keptAction {
			kept++
		}
	}
	head := what + ": removed (" + objects(len(changes)-kept)
	if kept > 0 {
		head += fmt.Sprintf(", %d kept", kept)
	}
	lines := []string{head + ")"}
	for _, change := range changes {
		line := fmt.Sprintf("  %s %s", change.Object, change.Action)
		if change.Why != "" {
			line += " — " + change.Why
		}
		lines = append(lines, line)
	}
	return lines
}
