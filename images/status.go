package images

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
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

// failed names the first step that failed by itself, and gives the end of the output of all that did.
func (s *status) failed() (name string, log []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		// A step that another one's failure cancelled is no cause.
		st := s.steps[id]
		if st.last.Err == "" || strings.Contains(st.last.Err, "context canceled") {
			continue
		}
		if name == "" {
			name = st.last.Name
		}
		log = append(log, st.tail...)
	}
	return name, log
}

// sources are the places in the Dockerfile of dir that err names.
func sources(err error, dir string) []Source {
	var out []Source
	for _, s := range errdefs.Sources(err) {
		if s.Info == nil || len(s.Ranges) == 0 {
			continue
		}
		out = append(out, source(s.Info.Filename, int(s.Ranges[0].Start.Line), s.Info.Data))
	}
	if line := parseErrorLine.FindStringSubmatch(err.Error()); len(out) == 0 && line != nil {
		number, _ := strconv.Atoi(line[1]) // digits
		for _, name := range dockerfiles() {
			if path, info, err := inside(dir, name); err == nil && info != nil {
				text, _ := os.ReadFile(path) //nolint:errcheck // without it the place has no text
				return []Source{source(name, number, text)}
			}
		}
	}
	return out
}

// parseErrorLine is how an old BuildKit tells the place of a mistake.
var parseErrorLine = regexp.MustCompile(`(?i)dockerfile parse error (?:on )?line (\d+)`)

func source(file string, line int, text []byte) Source {
	at := Source{File: file, Line: line}
	if lines := strings.Split(string(text), "\n"); line >= 1 && line <= len(lines) {
		at.Text = strings.TrimSpace(lines[line-1])
	}
	return at
}
