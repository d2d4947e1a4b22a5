package jr2

import (
	"fmt"
	"io"
	"strings"

	"jr2.dev/jr2/internal/terminal"
	"jr2.dev/jr2/preflight"
)

// WriteText writes the report for people: first what was looked at, then each finding with its code, its sentence and its fix, and last how many there
// are of each severity, of which choice, and whether something was not looked at.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	b.WriteString(terminal.Line(r.head()) + "\n")
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-6s  %s  %s\n", f.Severity, terminal.Line(f.Code), terminal.Line(f.Object))
		for line := range strings.SplitSeq(strings.TrimRight(terminal.Below(f.Message), "\n"), "\n") {
			fmt.Fprintf(&b, "        %s\n", line)
		}
		if f.Fix != "" && !strings.Contains(f.Message, f.Fix) && !(r.Roles != "" && aboutRights(f)) { // the roles give all rights at once
			fmt.Fprintf(&b, "        fix: %s\n", terminal.Line(f.Fix))
		}
	}
	b.WriteString(r.sum() + "\n")
	if r.Roles != "" {
		fmt.Fprintf(&b, "\n# the smallest roles that would do, for an admin: %s\n%s", r.admit(), r.Roles)
	}
	_, err := io.WriteString(out, terminal.Text(b.String()))
	return err
}

// head says what was looked at, as far as it is known.
func (r *Report) head() string {
	head := "jr2 check"
	if r.Instance != "" {
		head += fmt.Sprintf(" — instance %q", r.Instance)
	}
	if r.Context != "" {
		head += fmt.Sprintf(" → context %s / namespace %s", r.Context, r.Namespace)
	}
	if r.Kubernetes != "" {
		head += ", Kubernetes " + r.Kubernetes
	}
	return head
}

// sum counts, and claims nothing of what was not asked for or not looked at.
func (r *Report) sum() string {
	count := map[preflight.Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	chosen, sum := r.chosen(), ""
	switch {
	case len(r.Findings) > 0:
		sum = fmt.Sprintf("%d to refuse, %d to warn of, %d to note", count[preflight.Refuse], count[preflight.Warn], count[preflight.Note])
		if chosen != "" {
			sum += ", of what was asked for: " + chosen
		}
	default:
		outlook := " stands in the way"
		if len(r.Unlooked) > 0 {
			outlook = " was found"
		}
		if sum = "nothing" + outlook; chosen != "" {
			sum = "nothing of what was asked for" + outlook + ": " + chosen
		}
	}
	if n := len(r.Unlooked); n > 0 {
		looks := "looks"
		if n == 1 {
			looks = "look"
		}
		sum += fmt.Sprintf(" — the rest was not looked at (%d %s)", n, looks)
		if count[preflight.Refuse] > 0 {
			sum += ": check again when what refuses is mended"
		}
	}
	return sum
}

// chosen names the codes that the caller chose; empty for all.
func (r *Report) chosen() string {
	var parts []string
	if len(r.Only) > 0 {
		parts = append(parts, "only "+strings.Join(r.Only, ", "))
	}
	if len(r.Skip) > 0 {
		parts = append(parts, "without "+strings.Join(r.Skip, ", "))
	}
	return strings.Join(parts, ", ")
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
