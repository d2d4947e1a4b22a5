package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// A mapper knows the resources of the kinds that the server serves. It asks once, and again after reset; a group whose server is away
// is left out. client-go's deferred mapper would do, but its cache reports trouble to the process's log.
type mapper struct {
	discovery discovery.DiscoveryInterface

	mu    sync.Mutex
	known meta.RESTMapper // nil when it is to be asked for
}

// mapping tells the resource of a kind in one version, or in the preferred one when the version is empty. A kind that is not known is
// an error for which meta.IsNoMatchError holds.
func (m *mapper) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		groups, err := restmapper.GetAPIGroupResources(m.discovery)
		if err != nil {
			return nil, err
		}
		m.known = restmapper.NewDiscoveryRESTMapper(groups)
	}
	if gvk.Version == "" {
		return m.known.RESTMapping(gvk.GroupKind())
	}
	return m.known.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// reset forgets what is known, because kinds came or went.
func (m *mapper) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}
