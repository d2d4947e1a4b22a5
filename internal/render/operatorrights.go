package render

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

func readVerbs() []string { return []string{"get", "list", "watch"} }
func writeVerbs() []string {
	return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
}
func statusVerbs() []string { return []string{"get", "patch", "update"} }

func rule(group string, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func list(s ...string) []string { return s }

// operatorRights are the rights of the manager, those of its leader election, and roles that an administrator may bind to people.
func operatorRights() []runtime.Object {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: names.OperatorAccount, Namespace: names.OperatorNamespace}
	objects := []runtime.Object{
		clusterRole(names.ManagerRole,
			rule("", list("pods", "services"), writeVerbs()),
			// To place what a quota refused as soon as there is room, and to tell a lost node from a deleted pod.
			rule("", list("resourcequotas"), readVerbs()),
			rule("", list("nodes"), list("get")),
			// To read what the Sandboxes of a namespace may ask for.
			rule("", list("namespaces"), list("get")),
			rule(v1alpha1.Group, list("sandboxes"), writeVerbs()),
			rule(v1alpha1.Group, list("repos"), list("get", "list", "patch", "update", "watch")),
			rule(v1alpha1.Group, list("sandboxes/status", "repos/status"), statusVerbs()),
			rule(v1alpha1.Group, list("sandboxes/finalizers"), list("update")),
		),
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: names.ManagerBinding, Labels: operatorLabels()},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: names.ManagerRole},
			Subjects:   []rbacv1.Subject{account},
		},
		&rbacv1.Role{
			TypeMeta:   kind("rbac.authorization.k8s.io/v1", "Role"),
			ObjectMeta: operatorMeta(names.ElectionRole),
			Rules: []rbacv1.PolicyRule{
				rule("coordination.k8s.io", list("leases"), writeVerbs()),
				rule("", list("events"), list("create", "patch")),
			},
		},
		&rbacv1.RoleBinding{
			TypeMeta:   kind("rbac.authorization.k8s.io/v1", "RoleBinding"),
			ObjectMeta: operatorMeta(names.ElectionBinding),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: names.ElectionRole},
			Subjects:   []rbacv1.Subject{account},
		},
	}
	for _, k := range []struct{ name, resource string }{{"sandbox", v1alpha1.SandboxResource}, {"repo", v1alpha1.RepoResource}} {
		status := rule(v1alpha1.Group, list(k.resource+"/status"), list("get"))
		objects = append(objects,
			clusterRole("jr2-"+k.name+"-admin-role", rule(v1alpha1.Group, list(k.resource), list("*")), status),
			clusterRole("jr2-"+k.name+"-editor-role", rule(v1alpha1.Group, list(k.resource), writeVerbs()), status),
			clusterRole("jr2-"+k.name+"-viewer-role", rule(v1alpha1.Group, list(k.resource), readVerbs()), status),
		)
	}
	return objects
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   kind("rbac.authorization.k8s.io/v1", "ClusterRole"),
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: operatorLabels()},
		Rules:      rules,
	}
}
