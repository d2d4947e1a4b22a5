package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"jr2.dev/jr2"
	"jr2.dev/jr2/preflight"
)

// A printer tells a command to the user.
type printer interface {
	event(jr2.Event)
	ending
}

// An ending is the last word of a command.
type ending interface {
	done(result any)
	failed(error)
}

func newPrinter(output string, streams Streams) (printer, error) {
	switch output {
	case "text":
		return textPrinter{out: streams.Out, err: streams.Err, narrate: jr2.Narrate(streams.Err)}, nil
	case "json":
		out := json.NewEncoder(streams.Out)
		out.SetEscapeHTML(false) // "<workflow>" is for people
		p := jsonPrinter{out: out, raw: streams.Out}
		p.print(versionLine{Type: "version", Version: jr2.EventVersion})
		return p, nil
	}
	return nil, fmt.Errorf("--output %q: want text or json", output)
}

// textPrinter writes lines to stderr; stdout stays empty but for a plan or a report.
type textPrinter struct {
	out     io.Writer
	err     io.Writer
	narrate func(jr2.Event)
}

func (p textPrinter) event(e jr2.Event) { p.narrate(e) }
func (p textPrinter) done(result any) {
	if text, ok := result.(interface{ WriteText(io.Writer) error }); ok {
		text.WriteText(p.out) //nolint:errcheck // a closed pipe is the reader's wish
	}
}
func (p textPrinter) failed(err error) { fmt.Fprintln(p.err, jr2.NarrateError(err)) }

// jsonPrinter writes one object a line to stdout: the version first, then events, last the result or the error. Each object begins with
// its type.
type jsonPrinter struct {
	out *json.Encoder
	raw io.Writer
}

type versionLine struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
}

type resultLine struct {
	Type string `json:"type"`
	// Result is what the verb returned.
	Result any `json:"result"`
}

type errorLine struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// Findings are those of a refusal.
	Findings []preflight.Finding `json:"findings,omitempty"`
}

func (p jsonPrinter) event(e jr2.Event) {
	line, err := jr2.MarshalEvent(e)
	if err != nil {
		p.failed(err)
		return
	}
	p.raw.Write(append(line, '\n')) //nolint:errcheck // a closed pipe must not stop a converge
}

func (p jsonPrinter) done(result any) { p.print(resultLine{Type: "result", Result: result}) }

func (p jsonPrinter) failed(err error) {
	line := errorLine{Type: "error", Message: jr2.NarrateError(err)}
	var refusal *jr2.Refusal
	if errors.As(err, &refusal) {
		line.Findings = refusal.Findings
	}
	p.print(line)
}

func (p jsonPrinter) print(line any) {
	p.out.Encode(line) //nolint:errcheck // as above
}

// end tells how a command ended, and returns its error as told.
func end(ctx context.Context, out ending, result any, err error) error {
	if err != nil && ctx.Err() != nil {
		err = interrupted{err}
	}
	if err != nil {
		out.failed(err)
		return reported{err}
	}
	out.done(result)
	return nil
}

// interrupted is how a command ends that the user ended. What its steps say then is noise: that they were cut off.
type interrupted struct{ err error }

func (interrupted) Error() string { return "interrupted — run it again to complete what was begun" }

func (i interrupted) Unwrap() error { return i.err }
