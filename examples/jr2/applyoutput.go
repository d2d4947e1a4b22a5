package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/preflight"
)

// An applyPrinter tells an apply, or its plan, to the user.
type applyPrinter interface {
	started(set *apply.Set, context string)
	unread([]apply.UnreadFile)
	found(preflight.Finding)
	applied(apply.Event)
	ending
}

func newApplyPrinter(output string, streams Streams) (applyPrinter, error) {
	switch output {
	case "text":
		return &applyText{err: streams.Err, out: streams.Out, waited: map[apply.Ref]string{}, hooks: map[apply.Ref]bool{}}, nil
	case "json":
		out := json.NewEncoder(streams.Out)
		out.SetEscapeHTML(false)
		p := jsonPrinter{out: out, raw: streams.Out}
		p.print(versionLine{Type: "version", Version: apply.EventVersion})
		return applyJSON{p}, nil
	}
	return nil, fmt.Errorf("--output %q: want text or json", output)
}

// applyText writes lines to stderr, and a plan to stdout.
type applyText struct {
	err, out io.Writer
	objects  int
	// wave is the line of the wave that began, until something in it is worth a line.
	wave string
	// waited are the last lines about objects that are waited for; hooks say by themselves when they ran.
	waited map[apply.Ref]string
	hooks  map[apply.Ref]bool
}

func (p *applyText) line(format string, args ...any) {
	if p.wave != "" {
		fmt.Fprintln(p.err, p.wave)
		p.wave = ""
	}
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(p.err, strings.ReplaceAll(text, "\n", `\n`)) // a line end in a name is no line of ours
}

func (p *applyText) started(set *apply.Set, context string) {
	p.objects = len(set.Objects)
	p.line("jr2 apply — %s (%s) → context %s", set.ID(), counted(p.objects, "object"), context)
}

// toldUnread is how many files that are not read are told one by one.
const toldUnread = 10

func (p *applyText) unread(files []apply.UnreadFile) {
	for i, f := range files {
		if i == toldUnread {
			p.line("note: and %d more files look like manifests and are not read", len(files)-i)
			return
		}
		p.line("note: %s looks like a manifest and is not read: %s", f.Path, f.Why)
	}
}

func (p *applyText) found(f preflight.Finding) {
	word := "note"
	if f.Severity == preflight.Warn {
		word = "warning"
	}
	for i, part := range strings.Split(f.Message, "\n") {
		if i > 0 {
			p.line("  %s", part)
			continue
		}
		p.line("%s: %s", word, part)
	}
}

func (p *applyText) applied(e apply.Event) {
	switch e := e.(type) {
	case apply.WaveStarted:
		p.wave = waveLine(e)
	case apply.Applied:
		if e.Action != apply.Unchanged {
			p.line("  %s %s", e.Ref, e.Action)
		}
	case apply.Removed:
		p.wave = "" // what left the set is in none
		p.line("  %s %s%s", e.Ref, e.Action, because(e.Why))
	case apply.HookStarted:
		word := "runs"
		if e.Joined {
			word = "runs still, from an apply that was cut off"
		}
		p.hooks[e.Ref] = true
		p.line("  %s %s", e.Ref, word)
	case apply.Unready:
		p.unready(e)
	case apply.Waiting:
		p.line("  %s waits: %s", e.Ref, e.Reason)
	case apply.Retrying:
		p.line("  %s is tried again: %s", e.Ref, oneLine(e.Err.Error()))
	case apply.Warned:
		p.line("warning: %s: %s", e.Ref, e.Text)
	case apply.LockHeld:
		p.line("waiting: %s applies this set since %s", e.Holder, e.Since.UTC().Format(time.RFC3339))
		p.line("  when nobody of that name is at work: %s", apply.BreakLock(e.Namespace, e.Name))
	}
}

// unready tells what an object waits for, and that the wait is over, once each.
func (p *applyText) unready(e apply.Unready) {
	text := oneLine(e.Status.Message)
	if e.Status.Done {
		if p.waited[e.Ref] == "" || p.hooks[e.Ref] {
			return // it was ready at the first look, or it tells that it ran
		}
		text = "ready"
		if e.Status.Note != "" {
			text += ": " + e.Status.Note
		}
	}
	if text == "" || p.waited[e.Ref] == text {
		return
	}
	p.waited[e.Ref] = text
	p.line("  %s: %s", e.Ref, text)
}

func (p *applyText) done(result any) {
	p.wave = "" // nothing was to be told of it
	switch result := result.(type) {
	case *apply.Plan:
		result.WriteText(p.out) //nolint:errcheck // a closed pipe is the reader's wish
	case *apply.Outcome:
		n, going := result.Changed(), ""
		if gone := result.Count(apply.Terminating); gone > 0 {
			going = fmt.Sprintf(", %d being deleted", gone)
		}
		if n > 0 || going != "" {
			p.line("applied: %s changed, %d unchanged%s — all of the set is ready", counted(n, "object"), result.Count(apply.Unchanged), going)
			return
		}
		p.line("nothing changed: %s as asked", counted(p.objects, "object"))
	}
}

func (p *applyText) failed(err error) {
	p.wave = ""
	for line := range strings.SplitSeq(jr2.NarrateError(err), "\n") {
		p.line("%s", line)
	}
}

func waveLine(e apply.WaveStarted) string {
	phase := ""
	if e.Phase != apply.Sync {
		phase = string(e.Phase) + " "
	}
	return fmt.Sprintf("%swave %d: %s", phase, e.Wave, counted(e.Objects, "object"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " — " + oneLine(why)
}

func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }

// applyJSON writes one object a line: the version, the start, findings, events, and last the result or the error.
type applyJSON struct{ jsonPrinter }

func (p applyJSON) started(set *apply.Set, context string) {
	p.print(struct {
		Type    string `json:"type"`
		Set     string `json:"set"`
		Context string `json:"context"`
		Objects int    `json:"objects"`
	}{"started", set.ID(), context, len(set.Objects)})
}

func (p applyJSON) unread(files []apply.UnreadFile) {
	if len(files) == 0 {
		return
	}
	p.print(struct {
		Type  string             `json:"type"`
		Files []apply.UnreadFile `json:"files"`
		More  int                `json:"more,omitempty"` // that are not listed
	}{"unread", files[:min(len(files), toldUnread)], max(len(files)-toldUnread, 0)})
}

func (p applyJSON) found(f preflight.Finding) {
	p.print(struct {
		Type    string            `json:"type"`
		Finding preflight.Finding `json:"finding"`
	}{"finding", f})
}

func (p applyJSON) applied(e apply.Event) {
	line, err := apply.MarshalEvent(e)
	if err != nil {
		p.failed(err)
		return
	}
	p.raw.Write(append(line, '\n')) //nolint:errcheck // a closed pipe must not stop an apply
}

// identity tells a person who holds the lock.
func identity() string {
	name, host := "unknown user", "unknown host"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%s@%s, process %d", name, host, os.Getpid())
}
