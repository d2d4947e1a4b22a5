package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jr2.dev/jr2"
)

// terminal opens a pseudo terminal: what is written to keyboard is read from tty.
func terminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { keyboard.Close() }) //nolint:errcheck // the test is over
	must(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	must(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { tty.Close() }) //nolint:errcheck // the test is over
	return keyboard, tty
}

func (s *stage) testPrompt(t *testing.T) {
	const question = `first contact: deploy instance "fx-ping" to context shared (create namespace "asked")? [y/N] `
	ask := func(t *testing.T) (run *session, keyboard *os.File, ended <-chan error, interrupt func()) {
		run = newSession()
		keyboard, tty := terminal(t)
		run.in = tty
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		ended = run.start(ctx, s.args("asked")...)
		run.err.await(t, question)
		return run, keyboard, ended, cancel
	}
	for name, keys := range map[string]string{"n": "n\n", "nothing": "\n", "end of input": "\x04"} {
		t.Run(name, func(t *testing.T) {
			run, keyboard, ended, _ := ask(t)
			_, err := keyboard.WriteString(keys)
			must(t, err)
			if err := within(t, ended, time.Minute); !errors.Is(err, jr2.ErrDeclined) || !strings.HasSuffix(run.err.String(), "error: declined — nothing was changed\n") {
				t.Errorf("got %v\n%s", err, run.err)
			}
			if onOneLine := strings.Contains(run.err.String(), question+"error: "); onOneLine == (keys == "\x04") {
				// The terminal itself shows the end of a line that was typed.
				t.Errorf("the question's line ends wrong: %q", run.err)
			}
			s.isAbsent(t, "asked")
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		run, keyboard, ended, interrupt := ask(t)
		interrupt()
		if err := within(t, ended, 5*time.Second); !errors.Is(err, context.Canceled) || !strings.HasSuffix(run.err.String(), question+"\n"+interruptedLine+"\n") {
			t.Errorf("got %v\n%s", err, run.err)
		}
		_, err := keyboard.WriteString("\n") // ends the read that nobody waits for
		must(t, err)
		s.isAbsent(t, "asked")
	})
	t.Run("y", func(t *testing.T) {
		run, keyboard, ended, _ := ask(t)
		_, err := keyboard.WriteString("y\n")
		must(t, err)
		if err := within(t, ended, 3*time.Minute); err != nil || run.err.lastLine() != "converged — `jr2 run <workflow>` when ready" {
			t.Errorf("got %v\n%s", err, run.err)
		}
		run.silent(t)
	})
}
