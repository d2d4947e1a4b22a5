package main

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"jr2.dev/jr2"
)

func (s *stage) down(namespace string, more ...string) []string {
	args := s.args(namespace, more...)
	args[0] = "down"
	return args
}

// testDown removes what `up` brought: unasked with --yes, after a question on a terminal, and never without either.
func (s *stage) testDown(t *testing.T) {
	must(t, newSession().run(t.Context(), s.args("leaving", "--yes")...))
	unasked := newSession()
	var unconfirmed *jr2.UnconfirmedError
	if err := unasked.run(t.Context(), s.down("leaving")...); !errors.As(err, &unconfirmed) {
		t.Errorf("got %v", err)
	}
	const asked = `remove instance "fx-ping" from context shared (delete namespace "leaving" and everything in it)?`
	if unasked.err.lastLine() != "error: "+asked+" — not a tty; pass --yes to proceed non-interactively" {
		t.Errorf("got %s", unasked.err)
	}
	s.answer(t, "leaving", asked, "n\n", jr2.ErrDeclined)
	s.answer(t, "leaving", asked, "y\n", nil)
	s.isAbsent(t, "leaving")

	gone := newSession()
	var absent *jr2.NotDeployedError
	if err := gone.run(t.Context(), s.down("leaving", "--yes", "-o", "json")...); !errors.As(err, &absent) {
		t.Errorf("got %v", err)
	}
	if types := gone.types(t); types[len(types)-1] != "error" {
		t.Errorf("got %s", gone.out)
	}
	must(t, newSession().run(t.Context(), s.args("leaving", "--yes")...))
	all := newSession()
	must(t, all.run(t.Context(), s.down("leaving", "--yes", "--all", "-o", "json")...))
	var last struct{ Result jr2.DownResult }
	must(t, json.Unmarshal([]byte(all.out.lastLine()), &last))
	if types := all.types(t); types[len(types)-2] != "removed" || !last.Result.Gone || len(last.Result.Operator) == 0 {
		t.Errorf("got %s", all.out)
	}
	s.isAbsent(t, "jr2-system")
}

// answer types keys to the question.
func (s *stage) answer(t *testing.T, namespace, question, keys string, want error) {
	t.Helper()
	run := newSession()
	keyboard, tty := terminal(t)
	run.in = tty
	ended := run.start(t.Context(), s.down(namespace)...)
	run.err.await(t, question+" [y/N] ")
	_, err := keyboard.WriteString(keys)
	must(t, err)
	if err := within(t, ended, 3*time.Minute); !errors.Is(err, want) {
		t.Errorf("%q: got %v\n%s", keys, err, run.err)
	}
}
