package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

const deskSet = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: desk}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: before
  namespace: desk
  annotations: {argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: desk}
rules: [{apiGroups: [""], resources: [secrets], verbs: ["*"]}]
`

// TestApplyWithFewRights: who lacks rights hears of all of them before anything is written, of a hook's and of what a role grants too; when an admin
// has typed each fix, the same command brings the set, and one object less of it.
func TestApplyWithFewRights(t *testing.T) {
	clerk := devcluster.User{Name: "clerk", Rules: map[string][]rbacv1.PolicyRule{"desk": {{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create"}}}}}
	cluster := devcluster.ForTest(t, devcluster.Options{Bare: true, Context: "shared", Users: []devcluster.User{clerk}})
	admin, err := kubernetes.NewForConfig(cluster.Config())
	must(t, err)
	kubeconfig, err := cluster.KubeconfigFor("clerk")
	must(t, err)
	dir := filepath.Join(t.TempDir(), "desk")
	must(t, os.MkdirAll(dir, 0o755))
	said := func(text string) { must(t, os.WriteFile(filepath.Join(dir, "set.yaml"), []byte(text), 0o600)) }
	apply := func() (*session, []preflight.Finding) {
		run := newSession()
		err := run.run(t.Context(), "apply", dir, "--kubeconfig", kubeconfig, "-n", "desk")
		refusal := (*jr2.Refusal)(nil)
		if err != nil && !errors.As(err, &refusal) {
			t.Fatalf("%v\n%s", err, run.err)
		}
		if refusal == nil {
			return run, nil
		}
		return run, refusal.Findings
	}
	mend := func(findings []preflight.Finding) {
		for _, f := range findings {
			if _, err := cluster.Shell(t.Context(), f.Fix); err != nil {
				t.Fatalf("%s: %v", f.Object, err)
			}
		}
	}

	said(deskSet)
	_, missing := apply()
	var objects []string
	for _, f := range missing {
		objects = append(objects, f.Object)
	}
	for _, want := range []string{"patch configmaps in namespace desk", "create serviceaccounts in namespace desk", "delete serviceaccounts in namespace desk",
		"create leases.coordination.k8s.io in namespace desk", "patch roles.rbac.authorization.k8s.io in namespace desk"} {
		if !slices.Contains(objects, want) {
			t.Errorf("not told: %s in %s", want, strings.Join(objects, ", "))
		}
	}
	if !slices.ContainsFunc(missing, func(f preflight.Finding) bool { return f.Code == preflight.CodeEscalation }) {
		t.Errorf("no escalation in %s", strings.Join(objects, ", "))
	}
	if maps, err := admin.CoreV1().ConfigMaps("desk").List(t.Context(), metav1.ListOptions{}); err != nil || len(maps.Items) > 0 {
		t.Errorf("it wrote %v, %v", maps.Items, err)
	}
	for rounds := 0; len(missing) > 0; rounds++ {
		if rounds == 4 {
			t.Fatalf("still missing: %s", missing[0].Message)
		}
		mend(missing)
		_, missing = apply()
	}

	said(deskSet[:strings.Index(deskSet, "---\napiVersion: rbac")])
	_, missing = apply()
	if len(missing) != 1 || missing[0].Object != "delete roles.rbac.authorization.k8s.io in namespace desk" {
		t.Fatalf("to prune a role: %v", missing)
	}
	mend(missing)
	if _, missing = apply(); len(missing) > 0 {
		t.Errorf("after the fix: %v", missing)
	}
	if roles, err := admin.RbacV1().Roles("desk").List(t.Context(), metav1.ListOptions{}); err != nil || slices.ContainsFunc(roles.Items, func(r rbacv1.Role) bool { return r.Name == "reader" }) {
		t.Errorf("the role is still there: %v", err)
	}
}
