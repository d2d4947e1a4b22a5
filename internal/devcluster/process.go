package devcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A ComponentError says which part of the cluster did not come up, or ended, and what it wrote last.
type ComponentError struct {
	Name string
	Err  error
	// Log is the end of the component's log.
	Log string
}

func (e *ComponentError) Error() string {
	if e.Log == "" {
		return fmt.Sprintf("%s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s: %v; the end of its log:\n%s", e.Name, e.Err, e.Log)
}

func (e *ComponentError) Unwrap() error { return e.Err }

// errEnded is the cause of a ComponentError for a process that ended by itself.
var errEnded = errors.New("ended")

// A process is a running component.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	// done is closed after the process has ended; err is set before.
	done chan struct{}
	err  error
}

// run starts a component whose output goes to NAME.log in dir.
func (s *spawner) run(dir, name, path string, args ...string) (*process, error) {
	return s.runWith(nil, dir, name, path, args...)
}

func (s *spawner) runWith(attr *syscall.SysProcAttr, dir, name, path string, args ...string) (*process, error) {
	p := &process{name: name, logPath: logPath(dir, name), done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(path, args...)
	p.cmd.SysProcAttr = attr
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// HOME keeps a component from reading the user's own configuration.
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	if err := s.start(p.cmd); err != nil {
		return nil, &ComponentError{Name: name, Err: err}
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func logPath(dir, name string) string { return dir + string(os.PathSeparator) + name + ".log" }

// ended is the error of a process that has ended, though nobody told it to.
func (p *process) ended() error {
	err := errEnded
	if p.err != nil {
		err = fmt.Errorf("%w: %w", errEnded, p.err)
	}
	return &ComponentError{Name: p.name, Err: err, Log: p.tail()}
}

// stop ends the process and waits for it. With grace it is asked first.
func (p *process) stop(grace time.Duration) {
	if grace > 0 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	killGroup(p.cmd.Process)
	<-p.done
}

// tail is the end of the log, as far as it is of use in an error.
func (p *process) tail() string { return tailOf(p.logPath, 4096, 20) }

func tailOf(path string, bytes int64, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-bytes)
	data := make([]byte, info.Size()-from)
	n, _ := f.ReadAt(data, from)
	all := strings.Split(strings.TrimRight(string(data[:n]), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
