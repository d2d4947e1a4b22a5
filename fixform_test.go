package jr2_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"jr2.dev/jr2/preflight"
)

// commandForm is how the fixes begin that are typed into a shell.
var commandForm = regexp.MustCompile(`^(kubectl|ssh-keygen|printf|echo|docker|npm|dir=\$\(mktemp) `)

func isCommand(fix string) bool { return commandForm.MatchString(fix) }

// A part of a fix that is to be typed and that a shell, or kubectl, would not take: a placeholder for what the program knows, or words for people.
var notTyped = regexp.MustCompile(`<[a-z ]+>|\bUSER\b|\bNAMESPACE\b|, (when|if|or) |: give |-n  |namespace/?$`)

// wellFormed wants each fix that begins as a command to be one to its end, and each finding that is no note to have a fix.
func wellFormed(t *testing.T, findings []preflight.Finding) {
	t.Helper()
	for _, f := range findings {
		switch {
		case !isCommand(f.Fix):
			if strings.Contains(f.Fix, "kubectl ") {
				t.Errorf("%s %s: a command among words: %s", f.Code, f.Object, f.Fix)
			}
		case notTyped.MatchString(f.Fix):
			t.Errorf("%s %s: the fix can't be typed as it stands: %s", f.Code, f.Object, f.Fix)
		default:
			if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", f.Fix).CombinedOutput(); err != nil {
				t.Errorf("%s %s: no shell takes %s: %v %s", f.Code, f.Object, f.Fix, err, out)
			}
		}
	}
}
