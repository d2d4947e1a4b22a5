package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"jr2.dev/jr2"
	"jr2.dev/jr2/preflight"
)

// A printer tells a converge to the user.
type printer interface {
	event(jr2.Event)
	done(*jr2.Result)
	failed(error)
}

func (u *up) printer() (printer, error) {
	switch u.output {
	case "text":
		return textPrinter{err: u.streams.Err, narrate: jr2.Narrate(u.streams.Err)}, nil
	case "json":
		p := jsonPrinter{out: json.NewEncoder(u.streams.Out), raw: u.streams.Out}
		p.print(map[string]any{"type": "version", "version": jr2.EventVersion})
		return p, nil
	}
	return nil, fmt.Errorf("--output %q: want text or json", u.output)
}

// textPrinter writes lines to stderr; stdout stays empty.
type textPrinter struct {
	err     io.Writer
	narrate func(jr2.Event)
}

func (p textPrinter) event(e jr2.Event) { p.narrate(e) }
func (p textPrinter) done(*jr2.Result)  {}
func (p textPrinter) failed(err error)  { fmt.Fprintln(p.err, jr2.NarrateError(err)) }

// jsonPrinter writes one object a line to stdout: the version first, then events, last the result or the error.
type jsonPrinter struct {
	out *json.Encoder
	raw io.Writer
}

func (p jsonPrinter) event(e jr2.Event) {
	line, err := jr2.MarshalEvent(e)
	if err != nil {
		p.failed(err)
		return
	}
	p.raw.Write(append(line, '\n')) //nolint:errcheck // a closed pipe must not stop a converge
}

func (p jsonPrinter) done(result *jr2.Result) {
	p.print(map[string]any{"type": "result", "result": result})
}

func (p jsonPrinter) failed(err error) {
	line := map[string]any{"type": "error", "message": jr2.NarrateError(err)}
	var refusal *preflight.Refusal
	if errors.As(err, &refusal) {
		line["findings"] = refusal.Findings
	}
	p.print(line)
}

func (p jsonPrinter) print(line map[string]any) {
	p.out.Encode(line) //nolint:errcheck // as above
}
