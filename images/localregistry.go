package images

import (
	"fmt"
	"net"
	"strings"

	"sigs.k8s.io/yaml"
)

// Where a cluster tells of a registry beside it: a ConfigMap in a namespace that everybody may know.
//
// Source: KEP-1755.
const (
	LocalRegistryNamespace = "kube-public"
	LocalRegistryConfigMap = "local-registry-hosting"
	localRegistryKey       = "localRegistryHosting.v1"
)

// A LocalRegistry is a registry beside a development cluster, which we push to by one name and nodes pull from by another.
type LocalRegistry struct {
	// Host is its name ("localhost:5001") for those outside of the cluster, us among them.
	Host string
	// FromRuntime is its name ("kind-registry:5000") for the container runtime of the nodes; empty means that Host is.
	FromRuntime string
}

// ParseLocalRegistry reads the data of the ConfigMap. Data without the version that is known gives the zero LocalRegistry.
func ParseLocalRegistry(data map[string]string) (LocalRegistry, error) {
	var hosting struct {
		Host                     string `json:"host"`
		HostFromContainerRuntime string `json:"hostFromContainerRuntime"`
	}
	if err := yaml.Unmarshal([]byte(data[localRegistryKey]), &hosting); err != nil {
		return LocalRegistry{}, fmt.Errorf("ConfigMap %s/%s: %s: %w", LocalRegistryNamespace, LocalRegistryConfigMap, localRegistryKey, err)
	}
	return LocalRegistry{Host: hosting.Host, FromRuntime: hosting.HostFromContainerRuntime}, nil
}

// PullName is the prefix by which nodes pull what is pushed under registry ("localhost:5001/team").
func (l LocalRegistry) PullName(registry string) string {
	host, path, _ := strings.Cut(registry, "/")
	if l.FromRuntime == "" || !sameHost(host, l.Host) {
		return registry
	}
	if path == "" {
		return l.FromRuntime
	}
	return l.FromRuntime + "/" + path
}

// MayBeLocal says whether registry is one that a cluster may know by another name: it is on this machine.
func MayBeLocal(registry string) bool {
	host, _, _ := strings.Cut(registry, "/")
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	return isLoopback(host)
}

// sameHost takes the names of this machine for one.
func sameHost(a, b string) bool {
	if a == b {
		return true
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && isLoopback(hostA) && isLoopback(hostB)
}
