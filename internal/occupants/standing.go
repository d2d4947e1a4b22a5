package occupants

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// standing are objects that every namespace gets by itself, and gets again when they are deleted, by group, kind and name.
var standing = []struct{ group, kind, name, by string }{
	{"", "ConfigMap", "kube-root-ca.crt", "Kubernetes"},
	{"", "ServiceAccount", "default", "Kubernetes"},
	{"", "ConfigMap", "openshift-service-ca.crt", "OpenShift"},
	{"", "ServiceAccount", "builder", "OpenShift"},
	{"", "ServiceAccount", "deployer", "OpenShift"},
	{"rbac.authorization.k8s.io", "RoleBinding", "system:image-pullers", "OpenShift"},
	{"rbac.authorization.k8s.io", "RoleBinding", "system:image-builders", "OpenShift"},
	{"rbac.authorization.k8s.io", "RoleBinding", "system:deployers", "OpenShift"},
	{"", "ConfigMap", "istio-ca-root-cert", "Istio"},
}

// standingAccounts are the accounts among them. Some versions of Kubernetes and of OpenShift give each a Secret or two.
var standingAccounts = []string{"default", "builder", "deployer"}

// accountAnnotations name, on such a Secret, the account that it is of.
var accountAnnotations = []string{"kubernetes.io/service-account.name", "openshift.io/internal-registry-auth-token.service-account"}

// stands says that an object comes with every namespace, or is noted about another one: nobody made it, and it is gone with what it is about.
// services are the names of the Services of the namespace.
func stands(ref Ref, o *metav1.PartialObjectMetadata, services map[string]bool) bool {
	switch {
	case ref.Kind == "Event" && (ref.Group == "" || ref.Group == "events.k8s.io"):
		return true
	case ref.Kind == "Endpoints" && ref.Group == "":
		return services[ref.Name]
	case ref.Kind == "EndpointSlice" && ref.Group == "discovery.k8s.io":
		return services[o.Labels["kubernetes.io/service-name"]]
	case ref.Kind == "Secret" && ref.Group == "":
		return ofStandingAccount(o)
	}
	for _, one := range standing {
		if one.group == ref.Group && one.kind == ref.Kind && one.name == ref.Name {
			return true
		}
	}
	return false
}

// ofStandingAccount says that a controller of the cluster made the Secret for an account that every namespace has. One that a person made for such
// an account is that person's.
func ofStandingAccount(o *metav1.PartialObjectMetadata) bool {
	for _, account := range standingAccounts {
		named := slices.ContainsFunc(accountAnnotations, func(key string) bool { return o.Annotations[key] == account })
		if named && (strings.HasPrefix(o.Name, account+"-token-") || strings.HasPrefix(o.Name, account+"-dockercfg-")) {
			return !slices.ContainsFunc(managersOf(o), func(manager string) bool { return !strings.HasSuffix(manager, "controller-manager") })
		}
	}
	return false
}
