//go:build unix

package preflight

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the command and its children in a process group of their own, and ends the whole group when the context ends: a compiler that
// starts workers leaves none behind.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
