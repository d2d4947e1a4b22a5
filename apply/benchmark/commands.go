package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A command is a peer that is an executable: the module in peers/NAME builds it from the package.
type command struct {
	name, pkg, ldflags string
	version            string // as told in the table
	args               func(j job) []string
}

func commands() []command {
	return []command{
		{
			name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl", version: "v1.36.3",
			ldflags: "-X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
			args: func(j job) []string {
				return []string{"apply", "--server-side", "-n", j.namespace, "-f", filepath.Join(j.dir, "manifests")}
			},
		},
		{
			name: "helm", pkg: "helm.sh/helm/v4/cmd/helm", version: "v4.3.2",
			args: func(j job) []string {
				return []string{"upgrade", "--install", "--server-side=true", "--qps=10000", "--burst-limit=10000", "-n", j.namespace, "benchmark", filepath.Join(j.dir, "chart")}
			},
		},
		{
			name: "kapp", pkg: "carvel.dev/kapp/cmd/kapp", version: "v0.64.2",
			args: func(j job) []string {
				return []string{"deploy", "--yes", "--wait=false", "--apply-concurrency=16", "--kube-api-qps=10000", "--kube-api-burst=10000",
					"-n", j.namespace, "-a", "benchmark", "-f", filepath.Join(j.dir, "manifests")}
			},
		},
	}
}

// build makes the executable, and returns where it is. The go command does nothing when it is there already.
func (c command) build(ctx context.Context, peers, cache string) (string, error) {
	out := filepath.Join(cache, c.name)
	build := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-ldflags", strings.TrimSpace("-s -w "+c.ldflags), "-o", out, c.pkg)
	build.Dir = filepath.Join(peers, c.name)
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", c.name, err, lastBytes(text, 2000))
	}
	return out, nil
}

// engine runs the executable. The time of its start is part of what its user waits for, and is timed.
func (c command) engine(executable string) engine {
	return engine{
		name: c.name + " " + c.version, peer: true,
		told: "`" + c.name + " " + strings.Join(c.args(job{namespace: "NS", dir: "DIR"}), " ") + "`",
		prepare: func(j job) (func(context.Context) error, error) {
			return func(ctx context.Context) error {
				run := exec.CommandContext(ctx, executable, c.args(j)...)
				run.Env = []string{"HOME=" + j.home, "KUBECONFIG=" + j.kubeconfig, "PATH=" + os.Getenv("PATH")}
				if text, err := run.CombinedOutput(); err != nil {
					return fmt.Errorf("%s: %w\n%s", c.name, err, lastBytes(text, 2000))
				}
				return nil
			}, nil
		},
	}
}

func lastBytes(text []byte, n int) []byte { return text[max(0, len(text)-n):] }
