package devcluster

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// CanBuildkit is nil where StartBuildkitd can work, as far as that can be known before anything is built; an
// ErrNoBuildkit with the reason otherwise.
func CanBuildkit() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: not root", ErrNoBuildkit)
	}
	if _, err := exec.LookPath("mount"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoBuildkit, err)
	}
	return nil
}

// containedScript gives the process a view of /proc that fits its namespace, and becomes it. Mounts that it makes are not
// seen outside.
const containedScript = `mount --make-rprivate / && mount -t proc proc /proc && exec "$@"`

// runContained is run for a component that has children of its own, which the death of a thread does not reach. The
// component is the first process of a PID namespace: when it ends, the kernel ends all others in there. Its mounts end
// with the mount namespace.
func (s *spawner) runContained(dir, name, path string, args ...string) (*process, error) {
	return s.runIn(syscall.CLONE_NEWPID|syscall.CLONE_NEWNS, dir, name, path, args...)
}

// runNetworked is runContained with a network of its own, which has no more than a loopback interface that is down.
func (s *spawner) runNetworked(dir, name, path string, args ...string) (*process, error) {
	return s.runIn(syscall.CLONE_NEWPID|syscall.CLONE_NEWNS|syscall.CLONE_NEWNET, dir, name, path, args...)
}

func (s *spawner) runIn(namespaces uintptr, dir, name, path string, args ...string) (*process, error) {
	shell := append([]string{"-c", containedScript, "sh", path}, args...)
	return s.runWith(&syscall.SysProcAttr{Cloneflags: namespaces}, dir, name, "/bin/sh", shell...)
}
