package devcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"jr2.dev/jr2/internal/devcluster/build"
)

// Shell has sh run a command line as the admin would who pastes it: with a kubectl of the control plane's version first in PATH, and a kubeconfig
// that leads here. It is built when it is first asked for. What the command prints comes back, with an error too.
func (c *Cluster) Shell(ctx context.Context, command string) (string, error) {
	cache := &build.Cache{Dir: c.options.CacheDir, Log: c.options.Log}
	bin, err := cache.Ensure(ctx, build.Kubectl())
	if err != nil {
		return "", err
	}
	run := exec.CommandContext(ctx, "sh", "-c", command)
	run.Dir = c.state.dir // kubectl keeps what it knows of the server in its home
	run.Env = []string{"HOME=" + c.state.dir, "KUBECONFIG=" + c.Kubeconfig(), "PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")}
	out, err := run.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return string(out), nil
}
