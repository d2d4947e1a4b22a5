package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// A screen keeps what is written and lets a test wait for a text.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
	// hold is called after each write, outside of the lock; nil does nothing. The writer waits for it.
	hold func(written string)
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	n, err := s.text.Write(p)
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if s.hold != nil {
		s.hold(string(p))
	}
	return n, err
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await returns when the text was written, within a minute.
func (s *screen) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		found, changed := strings.Contains(s.text.String(), want), s.changed
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%q was not written; what was:\n%s", want, s)
		}
	}
}

// lines are the lines written so far.
func (s *screen) lines() []string { return strings.Split(strings.TrimRight(s.String(), "\n"), "\n") }

func (s *screen) lastLine() string {
	lines := s.lines()
	return lines[len(lines)-1]
}

// A session is one run of the command with what it wrote.
type session struct {
	out, err *screen
	in       io.Reader
	env      []string
}

func newSession() *session {
	return &session{out: newScreen(), err: newScreen(), in: strings.NewReader("")}
}

func (s *session) run(ctx context.Context, args ...string) error {
	return Run(ctx, args, Streams{In: s.in, Out: s.out, Err: s.err, Env: s.env})
}

// start runs the command beside the test.
func (s *session) start(ctx context.Context, args ...string) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, args...) }()
	return ended
}

// within is the error of a command that must end now.
func within(t *testing.T, ended <-chan error, limit time.Duration) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		t.Fatalf("the command did not end within %s", limit)
		return nil
	}
}

// silent checks that nothing went to stdout.
func (s *session) silent(t *testing.T) {
	t.Helper()
	if out := s.out.String(); out != "" {
		t.Errorf("stdout holds %q", out)
	}
}

var typeFirst = regexp.MustCompile(`^\{"type":"([a-zA-Z]+)"[,}]`)

// types checks that stdout is JSON, one object a line with its type first, and returns the types.
func (s *session) types(t *testing.T) []string {
	t.Helper()
	if !strings.HasSuffix(s.out.String(), "\n") {
		t.Errorf("the last line has no end: %q", s.out.lastLine())
	}
	var types []string
	for _, line := range s.out.lines() {
		begin := typeFirst.FindStringSubmatch(line)
		if !json.Valid([]byte(line)) || begin == nil {
			t.Fatalf("no JSON object with its type first: %q", line)
		}
		types = append(types, begin[1])
	}
	return types
}

// isolated takes the user's kubeconfig and home away.
func isolated(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", filepath.Join(home, "config"))
}

// instances is the folder of the example Instances.
func instances(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "instances", name))
	must(t, err)
	_, err = os.Stat(dir)
	must(t, err)
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
