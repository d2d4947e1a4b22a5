package build

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// ErrNoGo is the cause of a failed build when there is no go command.
var ErrNoGo = errors.New("the go command is not in PATH")

// An Error is a build that failed.
type Error struct {
	Tool string
	// Output is the end of what the go command said.
	Output string
	Err    error
}

func (e *Error) Error() string {
	if e.Output == "" {
		return fmt.Sprintf("build %s: %v", e.Tool, e.Err)
	}
	return fmt.Sprintf("build %s: %v\n%s", e.Tool, e.Err, e.Output)
}

func (e *Error) Unwrap() error { return e.Err }

// progressEvery is how often a long build says that it is still there.
const progressEvery = 15 * time.Second

// build leaves the executables and files in work/bin.
func (c *Cache) build(ctx context.Context, tool Tool, work string, mod, sum []byte) error {
	if _, err := exec.LookPath("go"); err != nil {
		return &Error{Tool: tool.Name, Err: ErrNoGo}
	}
	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"go.mod": mod, "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil {
			return err
		}
	}
	started := time.Now()
	c.logf("building %s (first time, %s)…", strings.Join(tool.executables(), ", "), tool.patience())
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-o", bin + string(filepath.Separator), "-ldflags", tool.LDFlags}
	if tool.Tags != "" {
		args = append(args, "-tags", tool.Tags)
	}
	if err := c.run(ctx, tool, work, append(args, tool.Packages...)); err != nil {
		return err
	}
	if err := tool.copyFiles(ctx, work, bin); err != nil {
		return err
	}
	c.logf("built %s in %s", strings.Join(tool.executables(), ", "), time.Since(started).Round(time.Second))
	return nil
}

// run runs the go command and reports, now and then, how many packages it has compiled.
func (c *Cache) run(ctx context.Context, tool Tool, dir string, args []string) error {
	cmd := tool.command(ctx, dir, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return &Error{Tool: tool.Name, Err: err}
	}
	var packages atomic.Int64
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.reportEvery(progressEvery, done, func(since time.Duration) string {
			return fmt.Sprintf("still building %s: %d packages, %s", tool.Name, packages.Load(), since.Round(time.Second))
		})
	}()
	output := lastLines(stderr, 30, func() { packages.Add(1) })
	err = cmd.Wait()
	close(done)
	<-stopped
	if ctx.Err() != nil {
		return &Error{Tool: tool.Name, Err: ctx.Err()}
	}
	if err != nil {
		return &Error{Tool: tool.Name, Output: output, Err: err}
	}
	return nil
}

func (c *Cache) reportEvery(every time.Duration, done <-chan struct{}, line func(since time.Duration) string) {
	started := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			c.logf("%s", line(time.Since(started)))
		}
	}
}

// command is a go command in the tool's module. A workspace or flags of the caller's own module must not reach it.
func (t Tool) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cgo := "0"
	if t.CGO {
		cgo = "1"
	}
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED="+cgo, "GOOS=", "GOARCH=")
	return cmd
}

func (t Tool) copyFiles(ctx context.Context, work, bin string) error {
	if len(t.Files) == 0 {
		return nil
	}
	out, err := t.command(ctx, work, "list", "-m", "-f", "{{.Dir}}", t.Module).Output()
	if err != nil {
		return &Error{Tool: t.Name, Err: fmt.Errorf("find the module's directory: %w", err)}
	}
	for from, to := range t.Files {
		if err := copyFile(filepath.Join(bin, to), filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(from))); err != nil {
			return &Error{Tool: t.Name, Err: err}
		}
	}
	return nil
}

// executables are what a person calls that which is built.
func (t Tool) executables() []string {
	var names []string
	if len(t.Packages) == 1 {
		return []string{t.Name}
	}
	for _, pkg := range t.Packages {
		names = append(names, path.Base(pkg))
	}
	return names
}

// patience says how long two cores take.
func (t Tool) patience() string {
	switch t.Name {
	case "kubernetes":
		return "about 10 minutes"
	case "runc", "controller-gen", "cni":
		return "under a minute"
	default:
		return "some minutes"
	}
}

// lastLines reads r to its end, calls each for every line and returns the last n.
func lastLines(r io.Reader, n int, each func()) string {
	var lines []string
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		each()
		lines = append(lines, scanner.Text())
		if len(lines) > n {
			lines = slices.Delete(lines, 0, 1)
		}
	}
	// A line longer than the buffer ends the scan; the go command must not block on a full pipe.
	_, _ = io.Copy(io.Discard, r)
	return strings.Join(lines, "\n")
}
