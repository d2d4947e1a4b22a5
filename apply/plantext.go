package apply

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"jr2.dev/jr2/internal/terminal"
)

// longestValue bounds a value in the text of a plan, in characters; the JSON form holds it whole.
const longestValue = 120

// WriteText writes the plan for a person: what it deletes and why that may be an accident, a line for each other object
// that is not unchanged, the fields of it below, and the counts.
func (p *Plan) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// WriteJSON writes the plan as one line of JSON: {"version":1,"set":…,"steps":[{"ref":…,"intent":"configure","fields":[{"path":…,"old":…,"new":…}]}]}.
func (p *Plan) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(p) }

// String is the text of WriteText.
func (p *Plan) String() string {
	var b strings.Builder
	p.writeDeletes(&b)
	for _, s := range p.Steps {
		if s.Intent == WillLeave || s.Intent == WillPrune {
			continue
		}
		s.write(&b)
		for _, f := range s.Fields {
			say(&b, "%12s%s: %s -> %s", "", f.Path, shorten(f.Old), shorten(f.New))
		}
	}
	var counts []string
	for _, i := range []struct {
		intent Intent
		text   string
	}{
		{WillCreate, "to create"}, {WillArrive, "to create on what arrives with the set"}, {WillConfigure, "to configure"}, {WillPrune, "to prune"},
		{WillAdopt, "to adopt"}, {WillRecreate, "to delete and make again"}, {WillMint, "to mint"}, {WillRun, "to run"},
		{WillKeep, "to keep"}, {StillGoing, "still going"}, {WillConflict, "in conflict"}, {WillFail, "refused"}, {WillLeave, "unchanged"},
	} {
		if n := p.Count(i.intent); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, i.text))
		}
	}
	if len(counts) == 0 {
		counts = []string{"nothing to do"}
	}
	b.WriteString(strings.Join(counts, ", ") + "\n")
	return b.String()
}

// write is the step in one line.
func (s Step) write(b *strings.Builder) {
	why := ""
	if s.Why != "" {
		why = ": " + strings.ReplaceAll(s.Why, "\n", "; ")
	}
	say(b, "%-11s %s%s", s.Intent, s.Ref, why)
}

// writeDeletes comes before everything else: it is what nobody may overlook.
func (p *Plan) writeDeletes(b *strings.Builder) {
	goes := p.going()
	if len(goes) == 0 {
		return
	}
	say(b, "DELETES %s:", objectCount(len(goes)))
	for _, s := range p.Steps {
		if s.Intent == WillPrune {
			s.write(b)
		}
	}
	if p.Accident == nil {
		return
	}
	b.WriteString("which looks like an accident:\n")
	for _, line := range p.Accident.doubts() {
		say(b, "%12s%s", "", line)
	}
}

// say writes one line. Text of others in it stays there.
func say(b *strings.Builder, format string, args ...any) {
	b.WriteString(terminal.Line(fmt.Sprintf(format, args...)) + "\n")
}

func shorten(v Value) string {
	text := []rune(v.String())
	if len(text) <= longestValue {
		return string(text)
	}
	return fmt.Sprintf("%s… (%d characters)", string(text[:longestValue]), len(text))
}
