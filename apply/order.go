package apply

// The tiers of kinds, in which the objects of a wave are written; each needs what the earlier ones made. Within a tier
// no object needs another one at the moment at which it is created, as far as Kubernetes' own kinds go; what a custom
// resource needs, its webhook says.
const (
	tierNamespaces = iota
	tierKinds      // CustomResourceDefinitions
	// tierClasses is what gives a later object a value when that is created, bounds it, or owns it: classes, limits,
	// quotas, volumes, accounts. An object that is created before its class stays without it, and a token Secret before
	// its account is deleted.
	tierClasses
	tierGround  // what pods and bindings refer to: roles, configuration, claims
	tierNetwork // Services and NetworkPolicies, and the bindings of the roles
	tierWorkloads
	tierRest     // custom resources, autoscalers, budgets, ingresses
	tierWebhooks // they judge every later write, so their servers must run
	// tierPolicies is the bindings of admission policies: while the policy is not there, they are refused to those who
	// are not admins.
	tierPolicies
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
		case "ServiceAccount", "LimitRange", "ResourceQuota", "PersistentVolume", "Node":
			return tierClasses
		}
		return tierGround
	case "apiextensions.k8s.io":
		return tierKinds
	case "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io":
		return tierClasses
	case "resource.k8s.io":
		if r.Kind == "ResourceClaim" || r.Kind == "ResourceClaimTemplate" {
			return tierGround
		}
		return tierClasses
	case "rbac.authorization.k8s.io":
		if r.Kind == "RoleBinding" || r.Kind == "ClusterRoleBinding" {
			return tierNetwork // a binding to a role that is not there is refused to those who are not admins
		}
		return tierGround
	case "networking.k8s.io":
		switch r.Kind {
		case "IngressClass", "ServiceCIDR":
			return tierClasses
		case "NetworkPolicy":
			return tierNetwork // before the first pod that it is about
		}
	case "apps", "batch":
		return tierWorkloads
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		if r.Kind == "ValidatingAdmissionPolicyBinding" || r.Kind == "MutatingAdmissionPolicyBinding" {
			return tierPolicies
		}
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
