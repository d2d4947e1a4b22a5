package render

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// account renders a ServiceAccount, a Role and a RoleBinding of one name in the namespace of the Instance.
func (in Input) account(name string, rules ...rbacv1.PolicyRule) []runtime.Object {
	return []runtime.Object{
		&corev1.ServiceAccount{TypeMeta: kind("v1", "ServiceAccount"), ObjectMeta: in.meta(name)},
		&rbacv1.Role{TypeMeta: kind("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: in.meta(name), Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta:   kind("rbac.authorization.k8s.io/v1", "RoleBinding"),
			ObjectMeta: in.meta(name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: in.namespace()}},
		},
	}
}
