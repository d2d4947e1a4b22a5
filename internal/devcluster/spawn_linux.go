package devcluster

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A spawner starts children that can't outlive this process, whatever ends it: the kernel kills a child when the thread
// that started it ends. Go moves goroutines between threads and ends idle ones, so all children are started by one
// goroutine that keeps its thread for as long as the cluster lives.
type spawner struct{ starts chan func() }

func newSpawner() *spawner {
	s := &spawner{starts: make(chan func())}
	go func() {
		// Never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		for start := range s.starts {
			start()
		}
	}()
	return s
}

// start starts the command in a process group of its own, away from the terminal's Ctrl-C: Close decides the order in
// which components end.
func (s *spawner) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true
	result := make(chan error)
	s.starts <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread, and with it what is left of the children.
func (s *spawner) close() { close(s.starts) }

// killGroup kills the process and those that it has started in its group.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
