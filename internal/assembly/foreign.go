package assembly

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A ForeignError is a ConfigMap that has a name of the Assembly's and that somebody else made: it carries none of the publisher's labels, and the server
// notes no field of it as the publisher's.
type ForeignError struct {
	Namespace, Name string
	Managers        []string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("ConfigMap %s/%s is there already and nothing shows that jr2 made it (field managers: %s)", e.Namespace, e.Name, strings.Join(e.Managers, ", "))
}

// claim refuses a ConfigMap of somebody else.
func (p *ClusterPublisher) claim(found *corev1.ConfigMap) error {
	kin := len(p.labels) > 0
	for key, value := range p.labels {
		kin = kin && found.Labels[key] == value
	}
	if kin || p.Adopt {
		return nil
	}
	var managers []string
	for _, entry := range found.ManagedFields {
		if entry.Manager == fieldManager {
			return nil
		}
		if !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	return &ForeignError{Namespace: found.Namespace, Name: found.Name, Managers: managers}
}
