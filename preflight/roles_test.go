package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"jr2.dev/jr2/preflight"
)

// The smallest roles hold each right once: not in a namespace when it is held everywhere, not by name when it is held for all, not by verb when
// every verb is.
func TestMinimalRolesAreSmallest(t *testing.T) {
	need := func(verb, group, resource, namespace, name string) preflight.Need {
		return preflight.Need{Right: preflight.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}, For: "x"}
	}
	objs := preflight.MinimalRoles("r", "alice", []preflight.Need{
		need("get", "", "configmaps", "a", "one"), need("get", "", "configmaps", "a", "two"), need("create", "", "configmaps", "a", ""),
		need("get", "", "secrets", "a", "one"), need("get", "", "secrets", "a", ""),
		need("list", "", "nodes", "", ""), need("list", "", "pods", "a", ""), need("get", "apps", "deployments", "a", "web"), need("patch", "apps", "deployments", "a", "web"),
		need("get", "apps", "daemonsets", "a", "web"), need("patch", "apps", "daemonsets", "a", "web"),
	}, []preflight.Grant{
		{Role: "ClusterRole x", Name: "x", Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}},
		{Role: "Role a/y", Namespace: "a", Name: "y", Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"*", "get"}}}},
	})
	var got []string
	for _, o := range objs {
		var rules []rbacv1.PolicyRule
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			rules = o.Rules
		case *rbacv1.Role:
			rules = o.Rules
		}
		for _, rule := range rules {
			got = append(got, fmt.Sprintf("%T %v %v %v %v", o, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs))
		}
	}
	want := `*v1.ClusterRole [] [nodes] [] [list]
*v1.ClusterRole [] [pods] [] [get list]
*v1.Role [] [configmaps] [] [create]
*v1.Role [] [configmaps] [one two] [get]
*v1.Role [] [secrets] [] [get]
*v1.Role [apps] [daemonsets deployments] [web] [get patch]
*v1.Role [apps] [statefulsets] [] [*]`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
