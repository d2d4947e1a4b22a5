package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// The waves in which a set is written; each needs what the earlier ones made. Within a wave nothing depends on anything.
const (
	waveNamespaces = iota
	waveKinds      // CustomResourceDefinitions
	waveGround     // what pods and bindings refer to: classes, quotas, roles, accounts, configuration, claims
	waveNetwork    // Services and NetworkPolicies, and the bindings of the roles
	waveWorkloads
	waveRest     // custom resources, autoscalers, budgets, ingresses
	waveWebhooks // they judge every later write, so their servers must run
	waveCount
)

// waveOf puts a kind into its wave.
func waveOf(r Ref) int {
	switch r.Group {
	case "":
		switch r.Kind {
		case "Namespace":
			return waveNamespaces
		case "Service":
			return waveNetwork
		case "Pod", "ReplicationController":
			return waveWorkloads
		}
		return waveGround
	case "apiextensions.k8s.io":
		return waveKinds
	case "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io":
		return waveGround
	case "rbac.authorization.k8s.io":
		if r.Kind == "RoleBinding" || r.Kind == "ClusterRoleBinding" {
			return waveNetwork // a binding to a role that is not there is refused to those who are not admins
		}
		return waveGround
	case "networking.k8s.io":
		if r.Kind == "NetworkPolicy" {
			return waveNetwork // before the first pod that it is about
		}
	case "apps", "batch":
		return waveWorkloads
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return waveWebhooks
	}
	return waveRest
}

// wavesOf splits the indexes of the objects into waves.
func wavesOf(objs []*unstructured.Unstructured) [waveCount][]int {
	var waves [waveCount][]int
	for i, o := range objs {
		w := waveOf(RefOf(o))
		waves[w] = append(waves[w], i)
	}
	return waves
}

// holdsData says that deleting an object of this kind may lose what nobody can make again.
func holdsData(r Ref) bool {
	switch r.Group {
	case "":
		return r.Kind == "PersistentVolumeClaim" || r.Kind == "PersistentVolume" || r.Kind == "Namespace" || r.Kind == "Secret"
	case "apiextensions.k8s.io":
		return true
	}
	return false
}
