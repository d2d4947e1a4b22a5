//go:build !linux

package images

import "syscall"

func withParent() *syscall.SysProcAttr { return nil }
