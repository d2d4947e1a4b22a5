package apply

// The tiers of kinds, in which the objects of a wave are written; each needs what the earlier ones made. Within a tier nothing depends on
// anything.
const (
	tierNamespaces = iota
	tierKinds      // CustomResourceDefinitions
	tierGround     // what pods and bindings refer to: classes, quotas, roles, accounts, configuration, claims
	tierNetwork    // Services and NetworkPolicies, and the bindings of the roles
	tierWorkloads
	tierRest     // custom resources, autoscalers, budgets, ingresses
	tierWebhooks // they judge every later write, so their servers must run
	tierCount
)

// tierOf puts a kind into its tier.
func tierOf(r Ref) int {
	switch r.Group {
	case "":
		switch r.Kind {
		case "Namespace":
			return tierNamespaces
		case "Service":
			return tierNetwork
		case "Pod", "ReplicationController":
			return tierWorkloads
		}
		return tierGround
	case "apiextensions.k8s.io":
		return tierKinds
	case "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io":
		return tierGround
	case "rbac.authorization.k8s.io":
		if r.Kind == "RoleBinding" || r.Kind == "ClusterRoleBinding" {
			return tierNetwork // a binding to a role that is not there is refused to those who are not admins
		}
		return tierGround
	case "networking.k8s.io":
		if r.Kind == "NetworkPolicy" {
			return tierNetwork // before the first pod that it is about
		}
	case "apps", "batch":
		return tierWorkloads
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return tierWebhooks
	}
	return tierRest
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
