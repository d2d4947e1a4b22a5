package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The kinds of an OpenPart.
const (
	OpenRepo  = "repo"
	OpenAgent = "agent"
)

// The states of a RepoSlot.
const (
	SlotBound  = "bound"  // a url in code
	SlotOpen   = "open"   // nobody bound it; a converge refuses
	SlotPerRun = "perRun" // a function of the run's input
)

// The accesses of an Agent to its Workspace.
const (
	AccessWrite = "write"
	AccessRead  = "read"
	AccessNone  = "none"
)

// Describe names the part: `Repo Slot "target" at "review"`, `the Repo Slots`, `Agent "author"`.
func (p OpenPart) Describe() string {
	what := fmt.Sprintf("Agent %q", p.Slot)
	if p.Kind == OpenRepo {
		what = fmt.Sprintf("Repo Slot %q", p.Slot)
		if p.Slot == "" {
			what = "the Repo Slots"
		}
	}
	switch {
	case p.Path == nil:
		return what + " of a Machine that no slot names"
	case len(p.Path) > 0:
		return what + " at " + quotedChain(p.Path)
	}
	return what
}

// ADR is the decision record that says why such a part must be bound.
func (p OpenPart) ADR() string {
	if p.Kind == OpenAgent {
		return "ADR-0054"
	}
	return "ADR-0051"
}

// Fix gives what the author of a Workflow has to write: a line that pastes into workflows/<workflow>.ts, with the Machine's import
// under the Workflow's name. Where no chain of slot keys leads to the part there is no such line, and the text says what to do
// first.
func (p OpenPart) Fix(workflow string) string {
	if p.Path == nil {
		return "make the Machine a named actor slot of its parent (`actors: { <key>: <machine> }`, then `src: \"<key>\"`), so that customize has a key to reach it by (ADR-0049, " + p.ADR() + ")"
	}
	inner := fmt.Sprintf("{ agents: { %s: { model: \"<provider>/<model>\" } } }", objectKey(p.Slot))
	if p.Kind == OpenRepo {
		slot := "<slot>"
		if p.Slot != "" {
			slot = objectKey(p.Slot)
		}
		inner = fmt.Sprintf("{ repos: { %s: \"<url>\" } }", slot)
	}
	for n := len(p.Path) - 1; n >= 0; n-- {
		inner = fmt.Sprintf("{ actors: { %s: %s } }", objectKey(p.Path[n]), inner)
	}
	return fmt.Sprintf("export const machine = customize(%s, %s)", identifier(workflow), inner)
}

var (
	identifierForm = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)
	notIdentifier  = regexp.MustCompile(`[^A-Za-z0-9]+([A-Za-z0-9]?)`)
)

// objectKey spells a key of an object literal; one that is no identifier is quoted.
func objectKey(key string) string {
	if identifierForm.MatchString(key) {
		return key
	}
	quoted, _ := json.Marshal(key)
	return string(quoted)
}

// identifier makes a name for an import out of the name of a Workflow: nightly-review → nightlyReview. The name `machine` is
// taken by the export.
func identifier(name string) string {
	id := notIdentifier.ReplaceAllStringFunc(name, func(s string) string {
		last := s[len(s)-1:]
		if identifierForm.MatchString(last) {
			return strings.ToUpper(last)
		}
		return strings.TrimLeft(s, "-_. ")
	})
	if !identifierForm.MatchString(id) || id == "machine" {
		return "imported"
	}
	return id
}
