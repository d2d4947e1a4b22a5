package devcluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// CanRealNode is nil where StartRealNode can work, as far as that can be known before anything is built; an ErrNoRealNode
// with the reason otherwise.
func CanRealNode() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: not root", ErrNoRealNode)
	}
	for _, command := range []string{"mount", "nsenter", "unshare", "pivot_root", "ip"} {
		if _, err := exec.LookPath(command); err != nil {
			return fmt.Errorf("%w: %w (.ci/deps.sh installs it)", ErrNoRealNode, err)
		}
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRealNode, err)
	}
	if !bytes.Contains(filesystems, []byte("\toverlay\n")) {
		return fmt.Errorf("%w: the kernel has no overlay file system", ErrNoRealNode)
	}
	hierarchies, err := findHierarchies()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRealNode, err)
	}
	for _, h := range hierarchies {
		if err := unix.Access(h.path, unix.W_OK); err != nil {
			return fmt.Errorf("%w: write to %s: %w", ErrNoRealNode, h.path, err)
		}
	}
	// Root in a container may not do what root does.
	may := exec.Command("unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "/bin/sh", "-c", "mount -t tmpfs may /tmp")
	if err := run(may, "namespaces and mounts"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoRealNode, err)
	}
	return nil
}

// runMachine starts the first process of a node: everything that is the node's own ends with it.
func (s *spawner) runMachine(dir, name string, script string, args ...string) (*process, error) {
	const own = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	return s.runWith(&syscall.SysProcAttr{Cloneflags: own}, dir, name, "/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
}
