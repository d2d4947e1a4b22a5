package jr2

import (
	"fmt"
	"io"
	"strings"

	"jr2.dev/jr2/preflight"
)

// WriteText writes the report for people: a finding with its code, its sentence and its fix, and last how many there are of each severity.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	count := map[preflight.Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
		fmt.Fprintf(&b, "%-6s  %s  %s\n", f.Severity, f.Code, f.Object)
		for line := range strings.SplitSeq(strings.TrimRight(f.Message, "\n"), "\n") {
			fmt.Fprintf(&b, "        %s\n", line)
		}
		if f.Fix != "" && !strings.Contains(f.Message, f.Fix) && !(r.Roles != "" && aboutRights(f)) { // the roles give all rights at once
			fmt.Fprintf(&b, "        fix: %s\n", f.Fix)
		}
	}
	switch {
	case len(r.Findings) == 0:
		b.WriteString("nothing stands in the way\n")
	default:
		fmt.Fprintf(&b, "%d to refuse, %d to warn of, %d to note\n", count[preflight.Refuse], count[preflight.Warn], count[preflight.Note])
	}
	if r.Roles != "" {
		fmt.Fprintf(&b, "\n# the smallest roles that would do, for an admin: %s\n%s", r.admit(), r.Roles)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// String is the text of WriteText.
func (r *Report) String() string {
	var b strings.Builder
	r.WriteText(&b) //nolint:errcheck // a Builder takes all
	return b.String()
}

// admit is the command that takes Roles. Where they begin with no Namespace it is not known whether theirs are there: reconcile makes those that are
// not, and apply makes what comes with them as it is written.
func (r *Report) admit() string {
	if strings.HasPrefix(r.Roles, "apiVersion: v1\n") {
		return "kubectl apply -f -"
	}
	return "kubectl auth reconcile -f -"
}
