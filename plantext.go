package jr2

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/terminal"
)

// WriteText writes the plan for a person: images, layers with what changes in them, what is minted, the Assembly, and the count.
func (p *Plan) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// WriteJSON writes the plan as one line of JSON.
func (p *Plan) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(p) }

// String is the text of WriteText.
func (p *Plan) String() string {
	var b strings.Builder
	p.writeDeletes(&b)
	if p.FirstContact != "" {
		say(&b, "first contact: %s", p.FirstContact)
	}
	if p.Holds != nil {
		say(&b, "  it holds what is not this instance's: %s", p.Holds)
	}
	for _, image := range p.Images {
		say(&b, "sandbox image %q: %s %s — %s", image.Name, image.Intent, image.Ref, image.Why)
	}
	for _, layer := range p.Layers {
		if layer.Name == layerInstance && p.Mint != nil {
			say(&b, "tokens: mint %s in %s", strings.Join(p.Mint.Keys, ", "), p.Mint.Secret)
		}
		if layer.Name == layerInstance && p.Certificates != nil {
			p.Certificates.write(&b)
		}
		if layer.Name == layerInstance {
			for _, key := range p.DeployKeys {
				key.write(&b)
			}
		}
		layer.write(&b)
	}
	if p.Assembly.Hash != "" {
		p.Assembly.write(&b)
	}
	for _, one := range p.InTheWay {
		fmt.Fprintf(&b, "in the way: %s\n", one)
	}
	switch n := p.Changes(); n {
	case 0:
		b.WriteString("nothing would change\n")
	case 1:
		b.WriteString("1 change\n")
	default:
		say(&b, "%d changes", n)
	}
	return b.String()
}

// say writes one line. Text of others in it stays there.
func say(b *strings.Builder, format string, args ...any) {
	b.WriteString(terminal.Line(fmt.Sprintf(format, args...)) + "\n")
}

// writeDeletes comes before everything else: it is what nobody may overlook. The layers say more of each.
func (p *Plan) writeDeletes(b *strings.Builder) {
	var goes []string
	for _, layer := range p.Layers {
		for _, step := range layer.Plan.Steps {
			if step.Intent == apply.WillPrune {
				goes = append(goes, step.Ref.String())
			}
		}
	}
	if len(goes) > 0 {
		say(b, "DELETES %s", strings.Join(goes, ", "))
	}
}

func (l PlannedLayer) write(b *strings.Builder) {
	if still := l.Plan.Count(apply.WillLeave); still == len(l.Plan.Steps) {
		say(b, "%s: unchanged (%d objects)", l.Name, still)
		return
	}
	say(b, "%s:", l.Name)
	for line := range strings.Lines(l.Plan.String()) {
		b.WriteString("  " + line)
	}
}

func (a PlannedAssembly) write(b *strings.Builder) {
	switch {
	case !a.Publish:
		say(b, "assembly: %s is current", a.Hash)
	case a.Current == a.Hash:
		say(b, "assembly: publish %s again", a.Hash)
	case a.Current == "":
		say(b, "assembly: publish %s", a.Hash)
	default:
		say(b, "assembly: publish %s, which replaces %s", a.Hash, a.Current)
	}
}
