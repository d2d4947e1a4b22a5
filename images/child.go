package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/moby/buildkit/client"
)

const (
	// childStart bounds the time in which a buildkitd that we started must take calls.
	childStart = 30 * time.Second
	// childStop is what it gets to end its builds and to write its cache down.
	childStop = 10 * time.Second
	childPoll = 50 * time.Millisecond
	// childLog is how much of its last output an error carries, in bytes.
	childLog = 2 << 10
)

// child starts a buildkitd of our own.
func (o ConnectOptions) child(ctx context.Context) (*BuildKit, Place, error) {
	place := Place{What: "buildkitd as a child", Why: "nothing else answered"}
	if runtime.GOOS != "linux" {
		return nil, place, errors.New("it runs on Linux only")
	}
	path, err := exec.LookPath(cmp.Or(o.Buildkitd, "buildkitd"))
	if err != nil {
		return nil, place, err
	}
	if os.Geteuid() != 0 {
		return nil, place, fmt.Errorf("%s needs root", path)
	}
	root := o.BuildkitdRoot
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, place, err
		}
		root = filepath.Join(cache, "jr2", "buildkit")
	}
	if o.find {
		return nil, place, errStartable
	}
	daemon, err := o.startChild(path, root)
	if err != nil {
		return nil, place, err
	}
	place.Address = daemon.address
	c, err := daemon.dial(ctx)
	if err != nil {
		return nil, place, errors.Join(err, daemon.stop())
	}
	return &BuildKit{client: c, closes: []func() error{c.Close, daemon.stop}}, place, nil
}

// A daemon is a buildkitd that is our child.
type daemon struct {
	address string
	dir     string // holds the socket and the log
	process *os.Process
	done    chan struct{} // closed when it has ended
	err     error         // why, then
}

func (o ConnectOptions) startChild(path, root string) (*daemon, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jr2-buildkitd-")
	if err != nil {
		return nil, err
	}
	d := &daemon{dir: dir, address: "unix://" + filepath.Join(dir, "buildkitd.sock"), done: make(chan struct{})}
	log, err := os.Create(d.logPath())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer log.Close()
	command := exec.Command(path, "--addr", d.address, "--root", root)
	command.Stdout, command.Stderr = log, log
	if err := o.Registries.tell(command, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	command.SysProcAttr = withParent()
	started := make(chan error)
	go func() {
		// The kernel ends the child with the thread that started it, so this thread waits as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := command.Start(); err != nil {
			started <- err
			return
		}
		d.process = command.Process
		started <- nil
		d.err = command.Wait()
		close(d.done)
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return d, nil
}

// dial waits until the child takes calls.
func (d *daemon) dial(ctx context.Context) (*client.Client, error) {
	within, cancel := context.WithTimeoutCause(ctx, childStart, fmt.Errorf("it does not take calls after %s%s", childStart, d.tail()))
	defer cancel()
	c, err := client.New(quiet(context.WithoutCancel(ctx)), d.address)
	if err != nil {
		return nil, err
	}
	socket, _ := socketPath(d.address)
	tick := time.NewTicker(childPoll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(socket); err == nil {
			if _, err := c.ListWorkers(quiet(within)); err == nil {
				return c, nil
			}
		}
		select {
		case <-d.done:
			return nil, errors.Join(fmt.Errorf("it ended at once: %w%s", d.err, d.tail()), c.Close())
		case <-within.Done():
			return nil, errors.Join(context.Cause(within), c.Close())
		case <-tick.C:
		}
	}
}

func (d *daemon) stop() error {
	d.process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended by itself
	late := time.NewTimer(childStop)
	defer late.Stop()
	select {
	case <-d.done:
	case <-late.C:
		d.process.Kill() //nolint:errcheck // as above
		<-d.done
	}
	return os.RemoveAll(d.dir)
}

func (d *daemon) logPath() string { return filepath.Join(d.dir, "buildkitd.log") }

// tail is the end of the child's output, for an error.
func (d *daemon) tail() string {
	text, err := os.ReadFile(d.logPath())
	if err != nil || len(text) == 0 {
		return ""
	}
	text = text[max(0, len(text)-childLog):]
	return "; it wrote last: " + strings.TrimSpace(string(text))
}
