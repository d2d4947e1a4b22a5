package narrate

import (
	"fmt"
	"strings"
	"time"

	"jr2.dev/jr2/internal/event"
	"jr2.dev/jr2/internal/seed"
)

func run(e event.Event) ([]string, bool) {
	switch e := e.(type) {
	case event.RunStarted:
		return one("jr2 run — workflow %q of instance %q as run %s → context %s / namespace %s", e.Workflow, e.Instance, e.RunID, e.Context, e.Namespace)
	case event.WorkspaceEntered:
		return []string{active(e)}, true
	case event.PlacingWaiting:
		if e.Changed {
			return nil, true // a wait has two lines, its beginning and its end
		}
		return []string{ofChild("placing", e.Child, seed.PlacingWaits, e.For, e.Message)}, true
	case event.PlacingEnded:
		waited := time.Duration(e.Seconds) * time.Second
		if e.Placed {
			return []string{ofChild("placed", e.Child, "  placed: after %s", waited)}, true
		}
		return []string{ofChild("placing", e.Child, "  placing: given up after %s", waited)}, true
	case event.WorkspaceHeld:
		return []string{ofChild("provisioning", e.Child, "  provisioning: %s", reasoned(e))}, true
	case event.SandboxRemoved:
		if e.Ran {
			return one("  %s deleted — the run is over", e.Sandbox)
		}
		return one("  %s deleted — it never ran", e.Sandbox)
	}
	return nil, false
}

// active shows the state of a Workspace as its Machine names it; that of a child stands below its path.
func active(e event.WorkspaceEntered) string {
	line := seed.RunPlacing
	state := e.State
	if e.Child != "" {
		state = e.Child + "/" + e.State
	}
	return strings.Replace(line, `"placing"`, fmt.Sprintf("%q", state), 1)
}

// ofChild fills in a sentence about the Workspace that is the root; for a child its path follows the first word.
func ofChild(word, child, format string, args ...any) string {
	line := fmt.Sprintf(format, args...)
	if child == "" {
		return line
	}
	return strings.Replace(line, word, word+" "+child, 1)
}

func reasoned(e event.WorkspaceHeld) string {
	if e.Message == "" {
		return e.Reason
	}
	return e.Reason + " — " + e.Message
}
