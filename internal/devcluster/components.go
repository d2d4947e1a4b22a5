package devcluster

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// serviceRange is where Services get their addresses. Nothing routes there.
const serviceRange = "10.96.0.0/16"

// etcdArgs: a temporary cluster need not survive a power cut, so its etcd does not wait for the disk.
func (c *Cluster) etcdArgs(port int) []string {
	client := "http://" + net.JoinHostPort(loopback, strconv.Itoa(port))
	// A single member talks to no peer, but it insists on listening for some.
	peer := "http://" + net.JoinHostPort(loopback, "0")
	args := []string{
		"--name=devcluster",
		"--data-dir=" + c.state.path(dirEtcd),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=devcluster=" + peer,
		"--log-level=warn",
	}
	if c.state.temporary {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (c *Cluster) apiserverArgs(etcdPort int) []string {
	s := c.state
	args := []string{
		"--etcd-servers=http://" + net.JoinHostPort(loopback, strconv.Itoa(etcdPort)),
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.APIPort),
		"--tls-cert-file=" + s.path(fileServerCert),
		"--tls-private-key-file=" + s.path(fileServerKey),
		"--cert-dir=" + s.dir,
		"--token-auth-file=" + s.path(fileTokens),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + s.path(fileAccountKey),
		"--service-account-signing-key-file=" + s.path(fileAccountKey),
		"--service-cluster-ip-range=" + serviceRange,
		"--allow-privileged=true",
		// The kubernetes Service can't have a loopback address as its endpoint, and nobody asks for it.
		"--endpoint-reconciler-type=none",
		// A real node's kubelet is reached at loopback, which is the only ExternalIP that a node has here.
		"--kubelet-preferred-address-types=ExternalIP,InternalIP",
		"--kubelet-client-certificate=" + s.path(fileServerCert),
		"--kubelet-client-key=" + s.path(fileServerKey),
		"--shutdown-delay-duration=0s",
	}
	if gates := gateFlag(c.options.FeatureGates); gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	if c.options.Bare {
		// It taints new nodes until a controller has seen them, and there is none.
		args = append(args, "--disable-admission-plugins=TaintNodesByCondition")
	}
	if c.options.Audit {
		args = append(args, c.auditArgs()...)
	}
	return args
}

// dependents are gates that are on by default and keep the API server from starting when the gate they need is off.
func dependents(gate string) []string {
	if gate == "PodLevelResources" {
		return []string{"InPlacePodLevelResourcesVerticalScaling"}
	}
	return nil
}

func gateFlag(gates map[string]bool) string {
	all := maps.Clone(gates)
	for gate, on := range gates {
		for _, dependent := range dependents(gate) {
			if _, said := gates[dependent]; !on && !said {
				all[dependent] = false
			}
		}
	}
	var flags []string
	for _, gate := range slices.Sorted(maps.Keys(all)) {
		flags = append(flags, fmt.Sprintf("%s=%t", gate, all[gate]))
	}
	return strings.Join(flags, ",")
}

// The limits of the clients are far above those of production: one process talks to an API server of its own.
func (c *Cluster) controllerManagerArgs() []string {
	s := c.state
	args := []string{
		"--kubeconfig=" + s.path(fileKubeconfig),
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + s.path(fileAccountKey),
		"--root-ca-file=" + s.path(fileCA),
		"--cluster-signing-cert-file=" + s.path(fileCA),
		"--cluster-signing-key-file=" + s.path(fileCAKey),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--pvclaimbinder-sync-period=1s",
	}
	if grace := c.options.NodeGrace; grace > 0 {
		args = append(args, "--node-monitor-grace-period="+grace.String(), "--node-monitor-period=1s")
	}
	return args
}

func (c *Cluster) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.state.path(fileKubeconfig),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

// kwokArgs: kwok also plays the kubelets' own endpoint, over which the API server reads the logs of a pod.
func (c *Cluster) kwokArgs(port int) []string {
	s := c.state
	return []string{
		"--kubeconfig=" + s.path(fileKubeconfig),
		"--config=" + s.path(fileStages),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + simulated + "=fake",
		"--node-lease-duration-seconds=40",
		"--node-ip=" + loopback,
		"--node-port=" + strconv.Itoa(port),
		"--server-address=" + net.JoinHostPort(loopback, strconv.Itoa(port)),
		"--tls-cert-file=" + s.path(fileServerCert),
		"--tls-private-key-file=" + s.path(fileServerKey),
	}
}

// binaries are the directories of the executables.
type binaries struct{ etcd, kubernetes, kwok string }

func (b binaries) path(component string) string {
	switch component {
	case "etcd":
		// The package of etcd's main is called server.
		return filepath.Join(b.etcd, "server")
	case "kwok":
		return filepath.Join(b.kwok, "kwok")
	default:
		return filepath.Join(b.kubernetes, component)
	}
}
