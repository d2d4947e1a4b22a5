package devcluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// DefaultContext is the name of the kubeconfig context where Options names none.
const DefaultContext = "devcluster"

// Options say what cluster to start. The zero value is a cluster with one ready linux/amd64 node that is gone, with all
// its data, after Close.
type Options struct {
	// Nodes are simulated. Nil stands for one Node with its defaults; an empty slice that is not nil, for none. Nodes that
	// are in Dir from an earlier start are kept; one of the same name is changed to what is said here.
	Nodes []Node
	// Users may talk to the cluster with no more than these rights. The admin always exists.
	Users []User
	// FeatureGates are given to the API server. A gate that others depend on takes them with it when it is turned off:
	// {"PodLevelResources": false} is enough in 1.36, where that gate is on by default and not locked.
	FeatureGates map[string]bool
	// NodeGrace is how long a node may be silent until it counts as NotReady. Default: Kubernetes' own, 50 s. Simulated nodes report
	// every 10 s, so that it must be well above that where there are any.
	NodeGrace time.Duration
	// Audit has the API server write an audit log of every request, without bodies but those of deletes: see AuditMark, AuditSince and Witness.
	Audit bool
	// Bare leaves out controllers, scheduler and kwok: objects are kept as they are written and nothing acts on them, so thousands are made in
	// seconds. A namespace other than default gets no service account by itself, a pod stays Pending, and Nodes is not looked at: a caller makes its own.
	Bare bool
	// Context is the name of the context in Kubeconfig; any string. Default: DefaultContext.
	Context string
	// Dir keeps the cluster: etcd's data, keys, tokens and the API server's port survive Close, and the next Start with
	// the same Dir goes on from there. One process at a time may use it: another gets an InUseError. Default: a temporary
	// directory, removed by Close.
	Dir string
	// CacheDir holds the executables. Default: see build.Cache.
	CacheDir string
	// Log takes progress, one line at a time: builds, which take minutes the first time, and components that end before
	// they should. It may be called from several goroutines. Default: silent.
	Log func(line string)
}

// Defaults of a Node.
const (
	DefaultNodeName = "node-1"
	DefaultArch     = "amd64"
	DefaultCPU      = "8"
	DefaultMemory   = "32Gi"
	DefaultPods     = "110"
)

// A Node is a simulated machine: the scheduler places pods on it, and they run without anything being run.
type Node struct {
	// Name defaults to DefaultNodeName.
	Name string
	// Arch is the architecture in Kubernetes' words (amd64, arm64, s390x, …). Default: DefaultArch.
	Arch string
	// Labels are added to those that a kubelet sets: kubernetes.io/arch, kubernetes.io/os, kubernetes.io/hostname.
	Labels      map[string]string
	Annotations map[string]string
	Taints      []corev1.Taint
	// Unschedulable is what kubectl cordon sets.
	Unschedulable bool
	// Allocatable adds to, or replaces, the defaults: DefaultCPU, DefaultMemory, DefaultPods.
	Allocatable corev1.ResourceList
	// NotReady leaves the node without a kubelet: its Ready condition is False, and nothing runs there.
	NotReady bool
}

// A User is known to the API server by a token and has the rights that are listed, and no more.
type User struct {
	Name   string
	Groups []string
	// ClusterRules hold in all namespaces and for cluster-scoped kinds.
	ClusterRules []rbacv1.PolicyRule
	// Rules hold in the namespace that is the key, which is created where it is missing.
	Rules map[string][]rbacv1.PolicyRule
}
