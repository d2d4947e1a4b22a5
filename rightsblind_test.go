package jr2_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"

	"jr2.dev/jr2/preflight"
)

// TestCheckOfWhoMayNothing: who may not even look at the namespace hears of all rights that are missing, and not only of that one. The roles that
// are printed do as they stand, also where the namespace is not there, and what they give leaves no right to be missed.
func TestCheckOfWhoMayNothing(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	blind := w.check(t, dir, preflight.Choice{}, into("rights-blind"), w.as("blind"))
	for _, object := range []string{"get namespaces in namespace rights-blind", "create secrets in namespace rights-blind", "list nodes"} {
		if !slices.ContainsFunc(blind.Findings, func(f preflight.Finding) bool { return f.Code == preflight.CodeRightMissing && f.Object == object }) {
			t.Errorf("not told: %s\n%s", object, blind)
		}
	}
	if !strings.Contains(blind.Roles, "name: jr2-converge-rights-blind") {
		t.Errorf("no roles:\n%s", blind)
	}

	w.give(t, []runtime.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sees"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "sees"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "sees"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "seeing"}}},
	})
	var seeing []runtime.Object
	must(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { // the authorizer hears of it in a moment
		seeing = decoded(t, w.check(t, dir, preflight.Choice{}, into("rights-unmade"), w.as("seeing")).Roles)
		return seeing[0].GetObjectKind().GroupVersionKind().Kind == "Namespace", nil
	}))
	w.give(t, seeing)
	w.knows(t, "seeing", seeing)
	if report := w.check(t, dir, preflight.Choice{}, into("rights-unmade"), w.as("seeing")); report.Roles != "" || report.Err() != nil {
		t.Errorf("with the roles that were printed:\n%s", report)
	}
}

// decoded reads a stream of objects.
func decoded(t *testing.T, text string) []runtime.Object {
	t.Helper()
	var objs []runtime.Object
	for doc := range strings.SplitSeq(text, "---\n") {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		must(t, err)
		objs = append(objs, o)
	}
	return objs
}
