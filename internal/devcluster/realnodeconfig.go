package devcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// pauseImage holds a pod's namespaces. It is never pulled.
const pauseImage = "localhost/devcluster/pause:1"

// noServer is the name server that pods get: nobody is there, and so it is known at once that a name has no address.
const noServer = loopback

// writeFiles writes what the node's components read.
func (n *RealNode) writeFiles() error {
	for _, dir := range []string{"etc", "etc/cni", "etc/certs.d", "root"} {
		if err := os.MkdirAll(n.dir.path(dir), 0o755); err != nil {
			return err
		}
	}
	kubelet, err := n.kubeletConfig()
	if err != nil {
		return err
	}
	network, err := json.MarshalIndent(n.networkConfig(), "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"kubelet.json":         kubelet,
		"cni/10-pods.conflist": network,
		"containerd.toml":      n.containerdConfig(),
		"resolv.conf":          []byte("nameserver " + noServer + "\n"),
	}
	for name, from := range map[string]string{"ca.crt": fileCA, "kubelet.crt": fileServerCert, "kubelet.key": fileServerKey} {
		if files[name], err = os.ReadFile(n.cluster.state.path(from)); err != nil {
			return err
		}
	}
	for name, data := range files {
		if err := writeFile(n.dir.path(filepath.Join("etc", name)), data); err != nil {
			return err
		}
	}
	kubeconfig := n.dir.path("etc/kubeconfig")
	// The cluster is for tests: it has no authorizer that knows which pods are a node's, so the kubelet is the admin.
	return n.cluster.WriteKubeconfig(kubeconfig, DefaultContext)
}

func (n *RealNode) kubeletArgs() []string {
	etc := inside + "/etc/"
	return []string{
		"--config=" + etc + "kubelet.json",
		"--kubeconfig=" + etc + "kubeconfig",
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.Address,
		// The addresses of the Node are those that it was registered with: register.
		"--cloud-provider=external",
	}
}

// kubeletConfig is the kubelet's configuration. JSON is YAML.
func (n *RealNode) kubeletConfig() ([]byte, error) {
	reserved, pods, err := reserve(n.options.Allocatable)
	if err != nil {
		return nil, err
	}
	etc := inside + "/etc/"
	config := map[string]any{
		"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
		"port": n.kubeletPort, "healthzPort": 0,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": false},
			// Only the API server has a certificate of this authority.
			"x509": map[string]any{"clientCAFile": etc + "ca.crt"},
		},
		"authorization":               map[string]any{"mode": "AlwaysAllow"},
		"tlsCertFile":                 etc + "kubelet.crt",
		"tlsPrivateKeyFile":           etc + "kubelet.key",
		"containerRuntimeEndpoint":    "unix://" + containerdSocket,
		"cgroupDriver":                "cgroupfs",
		"failCgroupV1":                false,
		"failSwapOn":                  false,
		"enforceNodeAllocatable":      []string{},
		"evictionHard":                map[string]string{},
		"makeIPTablesUtilChains":      false,
		"resolvConf":                  etc + "resolv.conf",
		"clusterDNS":                  []string{noServer},
		"clusterDomain":               "cluster.local",
		"systemReserved":              reserved,
		"maxPods":                     pods,
		"serializeImagePulls":         false,
		"nodeStatusUpdateFrequency":   "2s",
		"nodeLeaseDurationSeconds":    8,
		"syncFrequency":               "10s",
		"imageMaximumGCAge":           "0s",
		"shutdownGracePeriod":         "0s",
		"imageGCHighThresholdPercent": 100,
	}
	for name, value := range n.options.Kubelet {
		if value == nil {
			delete(config, name)
			continue
		}
		config[name] = value
	}
	return json.MarshalIndent(config, "", "  ")
}

// reserve is what the kubelet has to keep back so that no more than this is allocatable.
func reserve(allocatable corev1.ResourceList) (reserved map[string]string, pods int64, err error) {
	cpus, memory, err := capacity()
	if err != nil {
		return nil, 0, err
	}
	have := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
	most := resource.MustParse(DefaultPods)
	pods = most.Value()
	reserved = map[string]string{}
	for name, want := range allocatable {
		if name == corev1.ResourcePods {
			pods = want.Value()
			continue
		}
		rest, known := have[name]
		if !known {
			return nil, 0, fmt.Errorf("allocatable %s can't be set on a real node", name)
		}
		if rest.Cmp(want) < 0 {
			return nil, 0, fmt.Errorf("allocatable %s is %s, and this machine has %s", name, want.String(), rest.String())
		}
		rest.Sub(want)
		reserved[string(name)] = rest.String()
	}
	return reserved, pods, nil
}

// networkConfig is what the runtime gives to the CNI plugins.
func (n *RealNode) networkConfig() map[string]any {
	first := fmt.Sprintf("10.244.%d.", n.index)
	return map[string]any{
		"cniVersion": "1.0.0", "name": "pods",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": nodeBridge, "isDefaultGateway": true, "ipMasq": false, "hairpinMode": true,
			"ipam": map[string]any{
				"type": "host-local",
				"ranges": []any{[]any{map[string]any{
					"subnet": nodeNetwork, "rangeStart": first + "2", "rangeEnd": first + "254", "gateway": n.Address,
				}}},
			},
		}},
	}
}

// containerdConfig is containerd.toml.
func (n *RealNode) containerdConfig() []byte {
	snapshotter := "overlayfs"
	if onOverlay(n.dir.dir) {
		snapshotter = "native"
	}
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("version = 3")
	line("root = %q", "/var/lib/containerd")
	line("state = %q", "/run/containerd")
	line("disabled_plugins = [%q, %q, %q, %q]", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.devmapper",
		"io.containerd.snapshotter.v1.zfs", "io.containerd.nri.v1.nri")
	line("[grpc]\n  address = %q", containerdSocket)
	line("[plugins.'io.containerd.cri.v1.images']\n  snapshotter = %q", snapshotter)
	line("[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = %q", pauseImage)
	line("[plugins.'io.containerd.cri.v1.images'.registry]\n  config_path = %q", inside+"/etc/certs.d")
	// Where a capability is missing to lower a score of the OOM killer, the rest works without.
	line("[plugins.'io.containerd.cri.v1.runtime']\n  restrict_oom_score_adj = true")
	line("[plugins.'io.containerd.cri.v1.runtime'.cni]\n  bin_dirs = [%q]\n  conf_dir = %q", inside+"/cni", inside+"/etc/cni")
	line("[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n  runtime_type = %q", "io.containerd.runc.v2")
	line("[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\n  BinaryName = %q\n  SystemdCgroup = false", inside+"/runc/runc")
	return out.Bytes()
}

// TrustRegistry lets the node pull from the registry; its credentials come with pods, as pull secrets do.
func (n *RealNode) TrustRegistry(r *Registry) error {
	dir := n.dir.path(filepath.Join("etc/certs.d", r.Host))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	server := "http://" + r.Host
	var ca string
	if r.CA != nil {
		if err := writeFile(filepath.Join(dir, "ca.crt"), r.CA); err != nil {
			return err
		}
		server, ca = "https://"+r.Host, fmt.Sprintf("  ca = %q\n", inside+"/etc/certs.d/"+r.Host+"/ca.crt")
	}
	hosts := fmt.Sprintf("server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n%s", server, server, ca)
	if err := writeFile(filepath.Join(dir, "hosts.toml"), []byte(hosts)); err != nil {
		return err
	}
	return n.reach(r.Host, r.Host)
}

// apiAddress is host:port of the API server.
func (c *Cluster) apiAddress() string {
	return net.JoinHostPort(loopback, strconv.Itoa(c.state.APIPort))
}
