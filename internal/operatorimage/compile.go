package operatorimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Package is the main of the operator image, by its import path.
const Package = "jr2.dev/jr2/examples/operator"

// Compile builds a main package, such as Package, as a static executable for linux on that architecture, from the module around the working
// directory. It needs the go command; the first build of the operator takes minutes, later ones seconds.
func Compile(ctx context.Context, pkg, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "operatorimage-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "manager")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, pkg)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s for %s: %w\n%s", pkg, arch, err, output)
	}
	return os.ReadFile(file)
}
