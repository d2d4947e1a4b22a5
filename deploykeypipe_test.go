//go:build unix

package jr2_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jr2.dev/jr2"
)

// A named pipe into which nobody writes holds no key, and holds up nobody; one whose writer says nothing is waited for until the converge is given up; what
// a writer says is read.
func TestDeployKeyFromAPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	source := jr2.DeployKeySource{File: pipe}
	within := func(what string, do func()) {
		t.Helper()
		ended := make(chan struct{})
		go func() { defer close(ended); do() }()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: it hangs", what)
		}
	}
	within("no writer", func() {
		if _, err := source.Fingerprint(t.Context()); err == nil || !strings.Contains(err.Error(), pipe+": it holds no private key") {
			t.Errorf("without a writer: %v", err)
		}
	})

	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // both ends, so that the open waits for nobody
	must(t, err)
	w := theWorld(t, node("a"))
	dir := keyedFolder(t)
	given := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	within("a silent writer", func() {
		_, err := jr2.Converge(ctx, jr2.Options{
			Dir: dir, Config: w.Config(), Context: contextName, Yes: true, Namespace: "keys-piped", Env: map[string]string{},
			DeployKey: func(context.Context, jr2.DeployKeyRequest) (jr2.DeployKeySource, error) {
				time.AfterFunc(50*time.Millisecond, func() { cancel(given) })
				return source, nil
			},
		})
		if !errors.Is(err, given) {
			t.Errorf("of a silent writer: %v", err)
		}
	})
	w.isAbsent(t, "keys-piped")

	_, fingerprint, private := keyFile(t)
	_, err = writer.WriteString(private)
	must(t, err)
	within("a writer", func() {
		time.AfterFunc(100*time.Millisecond, func() { writer.Close() }) //nolint:errcheck // the reader sees it
		if got, err := source.Fingerprint(t.Context()); err != nil || got != fingerprint {
			t.Errorf("of a writer: %q, %v", got, err)
		}
	})
}
