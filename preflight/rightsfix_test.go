package preflight_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// someRights are of all shapes that a fix has to give: of kinds in and out of namespaces, of one object, of a namespace itself, of a
// subresource, of a kind that nobody serves, of verbs that RBAC alone knows, in namespaces that are there and that are not.
func someRights() []preflight.Right {
	var all []preflight.Right
	for _, namespace := range []string{"", "fix-made", "fix-unmade-1", "fix-unmade-2"} {
		all = append(all,
			preflight.Right{Verb: "get", Resource: "pods", Namespace: namespace},
			preflight.Right{Verb: "list", Resource: "pods", Namespace: namespace},
			preflight.Right{Verb: "get", Resource: "pods/log", Namespace: namespace},
			preflight.Right{Verb: "create", Resource: "pods/exec", Namespace: namespace},
			preflight.Right{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: namespace, Name: "web"},
			preflight.Right{Verb: "get", Group: "metrics.k8s.io", Resource: "pods", Namespace: namespace},
			preflight.Right{Verb: "patch", Group: "unserved.example.com", Resource: "widgets", Namespace: namespace},
			preflight.Right{Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Namespace: namespace, Name: "view"},
		)
		if namespace != "" {
			all = append(all, preflight.Right{Verb: "patch", Resource: "namespaces", Namespace: namespace, Name: namespace})
		}
	}
	return append(all, preflight.Right{Verb: "create", Resource: "namespaces"}, preflight.Right{Verb: "*", Group: "scheduling.k8s.io", Resource: "priorityclasses"})
}

// TestEachFixOfARightAlone: the fix of a missing right is typed as it stands, into a shell with a kubectl. It makes the right be there, whatever
// was there, and takes nothing away: not what others were given by a role of the same name, nor what earlier fixes gave, in any order and for
// several users.
func TestEachFixOfARightAlone(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}})
	admin := clientFor(t, cluster.Config())
	makeNamespace(t, admin, "fix-made", nil)
	const all = `CORP\it's "me"`
	rights := someRights()
	type asker struct {
		client  kubernetes.Interface
		missing []preflight.Finding
	}
	ask := func(user string, rights ...preflight.Right) (a asker) {
		var needs []preflight.Need
		for _, right := range rights {
			needs = append(needs, preflight.Need{Right: right, For: "a test"})
		}
		a.client = clientAs(t, cluster.Config(), user)
		var err error
		a.missing, err = preflight.Rights(t.Context(), a.client.AuthorizationV1(), user, needs, nil)
		must(t, err)
		return a
	}
	everything := ask(all, rights...)
	if len(everything.missing) != len(rights) {
		t.Fatalf("%d findings of %d rights:\n%s", len(everything.missing), len(rights), shown(everything.missing))
	}

	// Others have what a fix would make, with other content.
	taken := metav1.ObjectMeta{Name: "jr2:get:pods", Namespace: "fix-made"}
	_, err := admin.RbacV1().Roles("fix-made").Create(t.Context(), &rbacv1.Role{ObjectMeta: taken,
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: []string{"endpoints"}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().RoleBindings("fix-made").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: taken, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: taken.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "other"}}}, metav1.CreateOptions{})
	must(t, err)
	others := preflight.Right{Verb: "watch", Resource: "endpoints", Namespace: "fix-made"}

	seed := uint64(time.Now().UnixNano())
	t.Logf("in the order of the seed %d", seed)
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(rights)) {
		alone := ask(fmt.Sprint("alone-", i), rights[i])
		for _, fix := range []string{alone.missing[0].Fix, everything.missing[i].Fix} {
			if _, err := cluster.Shell(t.Context(), fix); err != nil {
				t.Errorf("%s: %v", rights[i], err)
			}
		}
		heard(t, alone.client, rights[i])
	}
	for i, right := range rights {
		heard(t, everything.client, right)
		if left := ask(fmt.Sprint("alone-", i), right).missing; len(left) > 0 {
			t.Errorf("taken away by a later fix: %s", right)
		}
	}
	heard(t, clientAs(t, cluster.Config(), "other"), others)
	if more := ask(all, preflight.Right{Verb: "delete", Resource: "pods", Namespace: "fix-made"}).missing; len(more) != 1 {
		t.Error("the fixes gave more than was missing")
	}
}

// clientAs is the admin's way to the cluster, taken for another user.
func clientAs(t *testing.T, config *rest.Config, user string) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return clientFor(t, config)
}

// heard waits until the authorizer, which hears of a role in a moment, lets the user do it.
func heard(t *testing.T, client kubernetes.Interface, right preflight.Right) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		findings, err := preflight.Rights(ctx, client.AuthorizationV1(), "", []preflight.Need{{Right: right}}, nil)
		return err == nil && len(findings) == 0, nil
	})
	if err != nil {
		t.Errorf("still missing: %s", right)
	}
}
