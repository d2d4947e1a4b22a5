package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/apply"
)

// TestAPruneThatLooksLikeAnAccidentIsAskedAbout: who sits at a terminal is asked, with the list, and has nothing
// deleted by any other answer than yes.
func TestAPruneThatLooksLikeAnAccidentIsAskedAbout(t *testing.T) {
	s := newMovedSet(t)
	answer := func(keys string) (*session, error) {
		run := newSession()
		keyboard, tty := terminal(t)
		run.in = tty
		ended := run.start(t.Context(), s.args()...)
		run.err.await(t, "would be deleted: ConfigMap shelf/web\ndelete what left the set? [y/N] ")
		_, err := keyboard.WriteString(keys)
		must(t, err)
		return run, within(t, ended, time.Minute)
	}
	run, err := answer("\n")
	if !errors.Is(err, apply.ErrPruneDeclined) || !strings.HasSuffix(run.err.String(), "error: the prune was declined, and nothing was changed\n") || !s.holdsWeb(t) {
		t.Errorf("no answer: %v\n%s", err, run.err)
	}
	if run, err = answer("y\n"); err != nil || s.holdsWeb(t) || !strings.Contains(run.err.String(), "  ConfigMap shelf/web pruned\n") {
		t.Errorf("yes: %v\n%s", err, run.err)
	}
}
