package images

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/solver/errdefs"
	digest "github.com/opencontainers/go-digest"
)

const (
	logTail      = 20       // lines of a failed step that an error carries
	maxLogLine   = 16 << 10 // bytes; a longer line is cut into several
	stderrStream = 2
)

// status turns BuildKit's stream of states into events and keeps the end of each step's output.
type status struct {
	ref  string
	mu   sync.Mutex
	emit func(Event)

	steps map[digest.Digest]*step
	order []digest.Digest
}

type step struct {
	last Step
	tail []string
	part map[int]*bytes.Buffer // the line that has not ended yet, per stream
}

func newStatus(ref string, emit func(Event)) *status {
	if emit == nil {
		emit = func(Event) {}
	}
	return &status{ref: ref, emit: emit, steps: map[digest.Digest]*step{}}
}

// mute ends the events: what comes later is dropped.
func (s *status) mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit = func(Event) {}
}

func (s *status) add(update *client.SolveStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range update.Vertexes {
		s.vertex(v)
	}
	for _, l := range update.Logs {
		s.log(l)
	}
	for _, w := range update.Warnings {
		s.warn(w)
	}
}

func (s *status) step(id digest.Digest) *step {
	if s.steps[id] == nil {
		s.steps[id] = &step{part: map[int]*bytes.Buffer{}, last: Step{Ref: s.ref, ID: id.String()}}
		s.order = append(s.order, id)
	}
	return s.steps[id]
}

func (s *status) vertex(v *client.Vertex) {
	st := s.step(v.Digest)
	next := Step{Ref: s.ref, ID: v.Digest.String(), Name: v.Name, Cached: v.Cached, Err: v.Error, Started: at(v.Started), Completed: at(v.Completed)}
	if next == st.last {
		return
	}
	st.last = next
	if !next.Completed.IsZero() {
		for stream, part := range st.part { // a last line without a newline
			if part.Len() > 0 {
				s.line(st, stream, part.String())
			}
			part.Reset()
		}
	}
	s.emit(next)
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (s *status) log(l *client.VertexLog) {
	st := s.step(l.Vertex)
	part := st.part[l.Stream]
	if part == nil {
		part = &bytes.Buffer{}
		st.part[l.Stream] = part
	}
	for _, b := range l.Data {
		if b == '\n' || part.Len() >= maxLogLine {
			s.line(st, l.Stream, part.String())
			part.Reset()
		}
		if b != '\n' {
			part.WriteByte(b)
		}
	}
}

// line emits one line as a terminal would leave it: what follows the last carriage return.
func (s *status) line(st *step, stream int, text string) {
	text = strings.TrimRight(text, "\r")
	text = text[strings.LastIndexByte(text, '\r')+1:]
	st.tail = append(st.tail, text)
	if len(st.tail) > logTail {
		st.tail = st.tail[1:]
	}
	s.emit(Log{Ref: s.ref, Step: st.last.ID, Line: text, Stderr: stream == stderrStream})
}

func (s *status) warn(w *client.VertexWarning) {
	warning := Warning{Ref: s.ref, Text: string(w.Short), URL: w.URL}
	if w.SourceInfo != nil && len(w.Range) > 0 {
		warning.File, warning.Line = w.SourceInfo.Filename, int(w.Range[0].Start.Line)
	}
	s.emit(warning)
}

// failedLog is the end of the output of the steps that failed by themselves.
func (s *status) failedLog() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, id := range s.order {
		// A step that another one's failure cancelled is no cause.
		if st := s.steps[id]; st.last.Err != "" && !strings.Contains(st.last.Err, "context canceled") {
			out = append(out, st.tail...)
		}
	}
	return out
}

// sources are the places in the Dockerfile that err names.
func sources(err error) []Source {
	var out []Source
	for _, s := range errdefs.Sources(err) {
		if s.Info == nil || len(s.Ranges) == 0 {
			continue
		}
		at := Source{File: s.Info.Filename, Line: int(s.Ranges[0].Start.Line)}
		if lines := strings.Split(string(s.Info.Data), "\n"); at.Line >= 1 && at.Line <= len(lines) {
			at.Text = strings.TrimSpace(lines[at.Line-1])
		}
		out = append(out, at)
	}
	return out
}
