package preflight

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"
)

// MinimalRoles are the smallest roles with which a user can do all that is needed, and grant what the grants do: a ClusterRole for what lives in
// no namespace, a Role in each namespace, and their bindings to the user. Rights that need no more are given for the named objects alone; of
// what is granted the user holds just that, and no right to grant more.
func MinimalRoles(name, user string, needs []Need, grants []Grant) []runtime.Object {
	byNamespace := map[string][]rbacv1.PolicyRule{}
	var everywhere []rbacv1.PolicyRule
	for _, namespace := range namespacesOf(needs, grants) { // "" comes first: what is held in all namespaces need not be given in one
		singles := smallest(singlesOf(needs, grants, namespace), everywhere)
		if namespace == "" {
			everywhere = singles
		}
		if len(singles) > 0 {
			byNamespace[namespace] = combined(singles)
		}
	}
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: cmp.Or(user, "USER")}}
	var objs []runtime.Object
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		if namespace == "" {
			ref.Kind = "ClusterRole"
			objs = append(objs, &rbacv1.ClusterRole{TypeMeta: typeMeta(ref.Kind), ObjectMeta: meta, Rules: byNamespace[namespace]},
				&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: ref, Subjects: subject})
			continue
		}
		objs = append(objs, &rbacv1.Role{TypeMeta: typeMeta(ref.Kind), ObjectMeta: meta, Rules: byNamespace[namespace]},
			&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: meta, RoleRef: ref, Subjects: subject})
	}
	return objs
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func namespacesOf(needs []Need, grants []Grant) []string {
	seen := map[string]bool{}
	for _, need := range needs {
		seen[need.Namespace] = true
	}
	for _, grant := range grants {
		seen[grant.Namespace] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// singlesOf are the rules of one namespace, each with one verb, one resource and at most one name.
func singlesOf(needs []Need, grants []Grant, namespace string) []rbacv1.PolicyRule {
	var singles []rbacv1.PolicyRule
	for _, need := range needs {
		if need.Namespace == namespace {
			singles = append(singles, need.rule())
		}
	}
	for _, grant := range grants {
		if grant.Namespace != namespace {
			continue
		}
		singles = append(singles, grant.minimum()...)
	}
	return singles
}

// smallest leaves out the rules that the others, or what is held besides, cover.
func smallest(singles, held []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	for i, single := range singles {
		others := slices.Concat(held, kept, singles[i+1:])
		if covered, _ := validation.Covers(others, []rbacv1.PolicyRule{single}); !covered {
			kept = append(kept, single)
		}
	}
	return kept
}

// combined puts single rules together: first the names that a verb has of a resource, then the verbs that a resource has for the same names, then
// the resources that have the same.
func combined(singles []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type target struct{ group, resource, verb string }
	type key struct{ group, names, what string } // what is a resource, or verbs
	names := map[target][]string{}
	var rules []rbacv1.PolicyRule
	for _, single := range singles {
		if len(single.NonResourceURLs) > 0 {
			rules = append(rules, single)
			continue
		}
		at := target{single.APIGroups[0], single.Resources[0], single.Verbs[0]}
		names[at] = append(names[at], single.ResourceNames...)
	}
	verbs, resources := map[key][]string{}, map[key][]string{}
	for at, all := range names {
		slices.Sort(all)
		same := key{at.group, strings.Join(all, ","), at.resource}
		verbs[same] = append(verbs[same], at.verb)
	}
	for at, all := range verbs {
		slices.Sort(all)
		same := key{at.group, at.names, strings.Join(all, ",")}
		resources[same] = append(resources[same], at.what)
	}
	for at, all := range resources {
		slices.Sort(all)
		rule := rbacv1.PolicyRule{APIGroups: []string{at.group}, Resources: all, Verbs: strings.Split(at.what, ",")}
		if at.names != "" {
			rule.ResourceNames = strings.Split(at.names, ",")
		}
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return rules
}

// RolesYAML writes roles as a stream that kubectl applies. "kubectl auth reconcile" also makes the namespaces that their Roles want.
func RolesYAML(objs []runtime.Object) (string, error) {
	var docs []string
	for _, o := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return "", err
		}
		if meta, ok := content["metadata"].(map[string]any); ok {
			delete(meta, "creationTimestamp")
		}
		raw, err := yaml.Marshal(content)
		if err != nil {
			return "", err
		}
		docs = append(docs, string(raw))
	}
	return strings.Join(docs, "---\n"), nil
}
