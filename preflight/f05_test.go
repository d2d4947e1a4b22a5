package preflight_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/preflight"
)

// f05Set is the set of the case: one object in no namespace of each kind that people forget, and a role that holds more than its writer.
const f05Set = `{apiVersion: v1, kind: Namespace, metadata: {name: f05-new}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: f05, namespace: NS}, value: 5}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: f05}, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: f05, namespace: NS}, rules: [{apiGroups: [""], resources: [secrets], verbs: ["*"]}]}`

// all is what the caller of the case has in his namespace.
const all = `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`

// A rightsCase is who asks about which set, and what is missing then, as "code object".
type rightsCase struct {
	// roles of the caller: rules by namespace, "" for the whole cluster.
	roles map[string]string
	set   string
	also  []preflight.Need
	// before is what the cluster has.
	before string
	want   []string
}

// TestF05RightsOfASet: scope and verb of each question are those of the call, and who may write a role may still not grant what it holds.
func TestF05RightsOfASet(t *testing.T) {
	t.Parallel()
	cluster := sharedCluster(t)
	for name, tt := range map[string]rightsCase{
		"the case": {roles: map[string]string{"NS": all}, set: f05Set, want: []string{
			"right-missing create clusterroles.rbac.authorization.k8s.io", "right-missing create namespaces", "right-missing create priorityclasses.scheduling.k8s.io",
			"right-missing get clusterroles.rbac.authorization.k8s.io", "right-missing get namespaces in namespace f05-new", "right-missing get priorityclasses.scheduling.k8s.io",
			"right-missing patch clusterroles.rbac.authorization.k8s.io", "right-missing patch namespaces in namespace f05-new", "right-missing patch priorityclasses.scheduling.k8s.io",
			"escalation ClusterRole f05",
		}},
		"escalation without no access": {
			roles: map[string]string{"NS": `{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, patch, create]}, {apiGroups: [""], resources: [secrets], verbs: [get, list]}`},
			set:   f05Set[strings.LastIndex(f05Set, "---")+4:],
			want:  []string{"escalation Role NS/f05"},
		},
		"no access without escalation": {
			roles: map[string]string{"NS": `{apiGroups: [""], resources: [secrets], verbs: ["*"]}`}, set: f05Set[strings.LastIndex(f05Set, "---")+4:],
			want: []string{"right-missing create roles.rbac.authorization.k8s.io in namespace NS", "right-missing get roles.rbac.authorization.k8s.io in namespace NS", "right-missing patch roles.rbac.authorization.k8s.io in namespace NS"},
		},
		"a patch without create": {
			roles: map[string]string{"NS": `{apiGroups: [""], resources: [configmaps], verbs: [get, patch]}`}, set: configMap("c"),
			want: []string{"right-missing create configmaps in namespace NS"},
		},
		"a patch without create, of what is there": {
			roles: map[string]string{"NS": `{apiGroups: [""], resources: [configmaps], verbs: [get, patch]}`}, set: configMap("c"), before: configMap("c"),
		},
		"create of a name": {
			roles: map[string]string{"NS": `{apiGroups: [""], resources: [configmaps], verbs: [get, patch, create], resourceNames: [c]}`}, set: configMap("c"),
			want: []string{"right-missing create configmaps in namespace NS"}, // an authorizer is not told the name of what is made
		},
		"another name": {
			roles: map[string]string{"NS": `{apiGroups: [""], resources: [configmaps], verbs: [get, patch], resourceNames: [d]}, {apiGroups: [""], resources: [configmaps], verbs: [create]}`}, set: configMap("c"),
			want: []string{"right-missing get configmaps in namespace NS", "right-missing patch configmaps in namespace NS"},
		},
		"a subresource": {
			roles: map[string]string{"NS": `{apiGroups: [""], resources: [pods], verbs: ["*"]}, {apiGroups: [apps], resources: ["*/scale"], verbs: ["*"]}`},
			also:  slices.Concat(preflight.Needs("a shell", "", "pods/exec", "NS", "web", "create"), preflight.Needs("a scale", "apps", "deployments/scale", "NS", "web", "patch")),
			want:  []string{"right-missing create pods/exec in namespace NS"},
		},
		"a subresource in a role": {
			roles: map[string]string{"NS": `{apiGroups: [rbac.authorization.k8s.io], resources: ["*"], verbs: [get, patch, create]}, {apiGroups: [""], resources: [pods], verbs: ["*"]}`},
			set:   `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: NS}, rules: [{apiGroups: [""], resources: [pods/exec], verbs: [create]}]}`,
			want:  []string{"escalation Role NS/r"},
		},
		"paths alone": {
			roles: map[string]string{"": `{nonResourceURLs: ["*"], verbs: ["*"]}`}, set: configMap("c"),
			want: []string{"right-missing create configmaps in namespace NS", "right-missing get configmaps in namespace NS", "right-missing patch configmaps in namespace NS"},
		},
		"a role of paths": {
			roles: map[string]string{"": `{apiGroups: [rbac.authorization.k8s.io], resources: ["*"], verbs: [get, patch, create]}, {nonResourceURLs: ["/metrics"], verbs: [get]}`},
			set:   role("ok", `{nonResourceURLs: [/metrics], verbs: [get]}`) + "\n---\n" + role("more", `{nonResourceURLs: [/metrics, /debug/*], verbs: [get]}`),
			want:  []string{"escalation ClusterRole more"},
		},
		"a binding of gathered rules": {
			roles: map[string]string{"NS": `{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [get, patch, create]}`}, set: binding("view"),
			want: []string{"escalation RoleBinding NS/b"},
		},
		"a binding of gathered rules, held": {roles: map[string]string{"NS": all}, set: binding("view")},
		"a binding, with bind": {
			roles: map[string]string{"NS": `{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [get, patch, create]}, {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind], resourceNames: [edit]}`},
			set:   binding("edit"),
		},
		"escalate does not bind": {
			roles: map[string]string{"NS": `{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [get, patch, create, escalate]}`},
			set:   f05Set[strings.LastIndex(f05Set, "---")+4:] + "\n---\n" + strings.ReplaceAll(binding("f05"), "kind: ClusterRole, ", "kind: Role, "),
			want:  []string{"escalation RoleBinding NS/b"},
		},
		"a role that gathers": {
			roles: map[string]string{"": `{apiGroups: [rbac.authorization.k8s.io], resources: ["*"], verbs: [get, patch, create]}`},
			set:   `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: f05-gathers}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: []}`,
			want:  []string{"escalation ClusterRole f05-gathers"},
		},
		"a kind that comes with the set": {
			roles: map[string]string{"": `{apiGroups: [apiextensions.k8s.io], resources: ["*"], verbs: ["*"]}`, "NS": `{apiGroups: [f05.example.com], resources: [geese], verbs: ["*"]}`},
			set: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: geese.f05.example.com}, spec: {group: f05.example.com, scope: Namespaced, names: {kind: Goose, plural: geese}, versions: [{name: v1}]}}
---
{apiVersion: f05.example.com/v1, kind: Goose, metadata: {name: g, namespace: NS}}
---
{apiVersion: f05.example.com/v1, kind: Gander, metadata: {name: g, namespace: NS}}`,
			want: []string{"not-looked-at Gander NS/g"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.ask(t, clientFor(t, cluster.Config()), "f05-"+strings.Map(func(r rune) rune {
				if r == ' ' || r == ',' {
					return '-'
				}
				return r
			}, name), func(user string) kubernetes.Interface { return clientAs(t, cluster.Config(), user) }, func(fix string) (string, error) { return cluster.Shell(t.Context(), fix) })
		})
	}
}

// ask prepares the namespace and the caller, and compares what he lacks. Then the fixes are typed, each as it stands, and nothing is lacking.
func (tt rightsCase) ask(t *testing.T, admin kubernetes.Interface, namespace string, as func(string) kubernetes.Interface, shell func(string) (string, error)) {
	t.Helper()
	in := func(text string) string { return strings.ReplaceAll(text, "NS", namespace) }
	makeNamespace(t, admin, namespace, nil)
	for _, o := range manifests(t, in(tt.before)) {
		var made corev1.ConfigMap
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &made))
		_, err := admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), &made, metav1.CreateOptions{})
		must(t, err)
	}
	user := "user of " + namespace
	client := as(user)
	for where, rules := range tt.roles {
		where = in(where)
		roles := manifests(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [`+rules+`]}`)
		var held rbacv1.Role
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(roles[0].Object, &held))
		give(t, admin, namespace, where, user, held.Rules)
		for _, rule := range held.Rules {
			if len(rule.Resources) > 0 {
				right := preflight.Right{Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0], Namespace: where}
				if len(rule.ResourceNames) > 0 {
					right.Name = rule.ResourceNames[0]
				}
				heard(t, client, right)
			}
		}
	}
	objs := manifests(t, in(tt.set))
	var also []preflight.Need
	for _, need := range tt.also {
		need.Namespace = in(need.Namespace)
		also = append(also, need)
	}
	opts := preflight.SetRightsOptions{Also: also}
	findings, err := preflight.SetRights(t.Context(), client, objs, opts)
	must(t, err)
	if got, want := coded(findings), strings.Split(in(strings.Join(tt.want, "\n")), "\n"); strings.Join(got, "\n") != strings.Join(sorted(want), "\n") {
		t.Errorf("got\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(sorted(want), "\n"), shown(findings))
	}
	for _, f := range findings {
		if f.Fix == "" {
			continue
		}
		if _, err := shell(f.Fix); err != nil {
			t.Errorf("%s: %v", f.Object, err)
		}
	}
	eventually(t, "nothing is lacking", func() bool {
		findings, err = preflight.SetRights(t.Context(), client, objs, opts)
		return err == nil && !slices.ContainsFunc(findings, func(f preflight.Finding) bool { return f.Severity == preflight.Refuse })
	})
}

func coded(findings []preflight.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Code+" "+f.Object)
	}
	return sorted(all)
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

func configMap(name string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, namespace: NS}, data: {a: b}}`
}

func role(name, rules string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: ` + name + `}, rules: [` + rules + `]}`
}

func binding(role string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + role + `}, subjects: [{kind: ServiceAccount, name: default, namespace: NS}]}`
}

// give makes a role of rules and binds it to a user.
func give(t *testing.T, admin kubernetes.Interface, name, namespace, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	ctx, rbac := context.WithoutCancel(t.Context()), admin.RbacV1()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	meta, ref := metav1.ObjectMeta{Name: name}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	if namespace != "" {
		_, err := rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		must(t, err)
		_, err = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		must(t, err)
		return
	}
	ref.Kind = "ClusterRole"
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	must(t, err)
}
