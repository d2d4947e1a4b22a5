//go:build unix

package preflight_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"jr2.dev/jr2/preflight"
)

const patience = 30 * time.Second

func TestTypecheckEndsWithItsContext(t *testing.T) {
	// The compiler starts a child that would hold its output open, and says so by a file.
	root := withCompiler(t, `const {spawn} = require("child_process"), fs = require("fs");
const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], {stdio: "inherit"});
fs.writeFileSync("pid.new", String(child.pid)); fs.renameSync("pid.new", "pid");
setInterval(() => {}, 1000)`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := preflight.Typecheck(ctx, root, preflight.TypecheckOptions{Trusted: true})
		done <- err
	}()
	pid := waitForFile(t, filepath.Join(root, "pid"), done)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waitForEnd(t, pid)
}

// waitForFile returns the number in a file that another process is going to write.
func waitForFile(t *testing.T, path string, done <-chan error) int {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case err := <-done:
			t.Fatalf("ended too early: %v", err)
		case <-tick.C:
		}
		if text, err := os.ReadFile(path); err == nil {
			pid, err := strconv.Atoi(string(text))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("%s never came", path)
	return 0
}

// waitForEnd waits until a process that is not ours to wait for is gone, or is a zombie that its new parent has not collected.
func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
	}
	t.Errorf("process %d lives on", pid)
}

func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	for i := len(text) - 1; i > 0; i-- {
		if text[i] == ')' { // the end of the command's name; the state is the next word
			return i+2 < len(text) && text[i+2] == 'Z'
		}
	}
	return false
}
