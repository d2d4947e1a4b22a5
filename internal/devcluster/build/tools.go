package build

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
)

//go:embed tools/*.mod tools/*.sum
var modules embed.FS

// KubernetesVersion is the version of the control plane that Kubernetes builds.
const KubernetesVersion = "v1.36.3"

// ContainerdVersion is the version that Containerd builds.
const ContainerdVersion = "v2.4.2"

// A Tool is a pinned module and what is taken from it.
type Tool struct {
	// Name names tools/NAME.mod and tools/NAME.sum, where Pins does not name others.
	Name string
	// Pins is the name of the tool whose go.mod and go.sum this one is built from.
	Pins string
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

// Kubelet is a node's agent, of the same version and from the same pins as the control plane: what both are made of is compiled
// once. It is a tool of its own because most tests need no real node.
func Kubelet() Tool {
	kubelet := Kubernetes()
	kubelet.Name, kubelet.Pins = "kubelet", "kubernetes"
	kubelet.Packages = []string{"k8s.io/kubernetes/cmd/kubelet"}
	return kubelet
}

// Kubectl is the client, of the control plane's version: what a person types is tried with it. Its pins are its own, because it needs little of
// what the control plane needs; what both are made of is compiled once.
func Kubectl() Tool {
	return Tool{
		Name:     "kubectl",
		Module:   "k8s.io/kubernetes",
		Packages: []string{"k8s.io/kubernetes/cmd/kubectl"},
		LDFlags:  Kubernetes().LDFlags,
	}
}

// Containerd runs a node's containers. Its executables are static: containerd, containerd-shim-runc-v2 and ctr, the client.
func Containerd() Tool {
	const cmd = "github.com/containerd/containerd/v2/cmd/"
	return Tool{
		Name:     "containerd",
		Module:   "github.com/containerd/containerd/v2",
		Packages: []string{cmd + "containerd", cmd + "containerd-shim-runc-v2", cmd + "ctr"},
		// The version is set by the build elsewhere too: containerd says it to the kubelet, which wants one.
		LDFlags: "-s -w -X github.com/containerd/containerd/v2/version.Version=" + ContainerdVersion,
	}
}

// CNI are the plugins that give a pod its network: bridge, loopback and host-local.
func CNI() Tool {
	const plugins = "github.com/containernetworking/plugins/plugins/"
	return Tool{
		Name:     "cni",
		Module:   "github.com/containernetworking/plugins",
		Packages: []string{plugins + "main/bridge", plugins + "main/loopback", plugins + "ipam/host-local"},
		LDFlags:  "-s -w",
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

// Runc runs the containers of the builder and of a real node. It is C in part: building it takes a C compiler and libseccomp's headers.
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

// pinsName is the name of the pair of files that pins the tool.
func (t Tool) pinsName() string { return cmp.Or(t.Pins, t.Name) }

// Tools are all tools that this package knows.
func Tools() []Tool {
	return []Tool{Etcd(), Kwok(), Kubernetes(), Buildkit(), Runc(), ControllerGen(), Kubelet(), Containerd(), CNI(), Kubectl()}
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
