package assembly

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if p.owns(found) || p.Adopt {
		return nil
	}
	var managers []string
	for _, entry := range found.ManagedFields {
		if !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	return &ForeignError{Namespace: found.Namespace, Name: found.Name, Managers: managers[:min(len(managers), maxManagers)]}
}

// maxManagers bounds how many field managers of an object are told.
const maxManagers = 10

// owns says that an object carries the labels of the publisher, or that the server notes a field of it as the publisher's.
func (p *ClusterPublisher) owns(found metav1.Object) bool {
	kin := len(p.labels) > 0
	for key, value := range p.labels {
		kin = kin && found.GetLabels()[key] == value
	}
	return kin || slices.ContainsFunc(found.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == fieldManager })
}
