package images

import "syscall"

// withParent lets the child end when we do, however that happens, and keeps the terminal's Ctrl-C from it: Close ends it in order.
func withParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}
