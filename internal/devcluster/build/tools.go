package build

import (
	"embed"
	"fmt"
	"slices"
)

//go:embed tools/*.mod tools/*.sum
var modules embed.FS

// KubernetesVersion is the version of the control plane that Kubernetes builds.
const KubernetesVersion = "v1.36.3"

// A Tool is a pinned module and what is taken from it.
type Tool struct {
	// Name names tools/NAME.mod and tools/NAME.sum.
	Name string
	// Module is the module that Files are read from.
	Module string
	// Packages are the main packages, in the order in which their executables are listed.
	Packages []string
	// LDFlags, Tags and CGO are go build's.
	LDFlags string
	Tags    string
	CGO     bool
	// Files are copied out of the module, next to the executables: path in the module → name.
	Files map[string]string
}

// Kubernetes is the control plane. The ldflags make /version say what a released binary says.
func Kubernetes() Tool {
	const pkg = "k8s.io/component-base/version"
	return Tool{
		Name:   "kubernetes",
		Module: "k8s.io/kubernetes",
		Packages: []string{
			"k8s.io/kubernetes/cmd/kube-apiserver",
			"k8s.io/kubernetes/cmd/kube-controller-manager",
			"k8s.io/kubernetes/cmd/kube-scheduler",
		},
		LDFlags: fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=36 -X %[1]s.gitTreeState=clean",
			pkg, KubernetesVersion),
	}
}

// Etcd is the store below the API server. The executable of its server module is called server.
func Etcd() Tool {
	return Tool{
		Name:     "etcd",
		Module:   "go.etcd.io/etcd/server/v3",
		Packages: []string{"go.etcd.io/etcd/server/v3"},
		LDFlags:  "-s -w",
	}
}

// Kwok simulates nodes. Its stages, the rules by which nodes and pods move on, come from the same module.
func Kwok() Tool {
	stages := []string{
		"node/fast/node-initialize.yaml",
		"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"pod/fast/pod-ready.yaml",
		"pod/fast/pod-complete.yaml",
		"pod/fast/pod-delete.yaml",
		"volume/fast/pv-bind.yaml",
		"volume/fast/pv-delete.yaml",
		"volume/fast/pvc-provision.yaml",
		"volume/fast/pvc-delete.yaml",
	}
	files := make(map[string]string, len(stages))
	for i, stage := range stages {
		files["kustomize/stage/"+stage] = fmt.Sprintf("stage-%02d.yaml", i)
	}
	return Tool{
		Name:     "kwok",
		Module:   "sigs.k8s.io/kwok",
		Packages: []string{"sigs.k8s.io/kwok/cmd/kwok"},
		LDFlags:  "-s -w",
		Files:    files,
	}
}

// Buildkit is the image builder's daemon.
func Buildkit() Tool {
	return Tool{
		Name:     "buildkit",
		Module:   "github.com/moby/buildkit",
		Packages: []string{"github.com/moby/buildkit/cmd/buildkitd"},
		LDFlags:  "-s -w",
	}
}

// Runc runs the builder's containers. It is C in part: building it takes a C compiler and libseccomp's headers.
func Runc() Tool {
	return Tool{
		Name:     "runc",
		Module:   "github.com/opencontainers/runc",
		Packages: []string{"github.com/opencontainers/runc"},
		LDFlags:  "-s -w",
		Tags:     "seccomp",
		CGO:      true,
	}
}

// ControllerGen writes CRDs and deep copies from Go types.
func ControllerGen() Tool {
	return Tool{
		Name:     "controller-gen",
		Module:   "sigs.k8s.io/controller-tools",
		Packages: []string{"sigs.k8s.io/controller-tools/cmd/controller-gen"},
		LDFlags:  "-s -w",
	}
}

// Tools are all tools that this package knows.
func Tools() []Tool {
	return []Tool{Etcd(), Kwok(), Kubernetes(), Buildkit(), Runc(), ControllerGen()}
}

// ToolNamed finds a tool of Tools.
func ToolNamed(name string) (Tool, bool) {
	all := Tools()
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return all[i], true
}
