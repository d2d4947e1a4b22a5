package jr2_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/preflight"
)

// tenantVerb bounds a verb of the admin in the namespace of a tenant who is in its way: it ends with an error of its own, or is cut off.
const tenantVerb = 30 * time.Second

// someTenants is how many seeds TestATenantsEditsMoveNothingOfOthers takes; JR2_TENANTS says another number and JR2_TENANTS_FROM where they begin.
const someTenants = 2

// Tenants are two Instances, each in a namespace of its own; a set that has objects in one of them, elsewhere and cluster-wide; and an admin.
type tenants struct {
	*world
	t   *testing.T
	dir string
	s   stranger
}

// TestATenantsEditsMoveNothingOfOthers: tenant A has the ClusterRole edit in his namespace, and writes whatever he may there. Then an admin does all that
// he does, for A and for B. Nothing of B's and nothing cluster-wide is another one after that, and B is served as ever. The first round has no edits:
// what an admin's run changes there is what it may change.
func TestATenantsEditsMoveNothingOfOthers(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	number := func(name string, or int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return or
	}
	tt := &tenants{world: w, t: t, dir: folder(t, map[string]string{"jr2.config.ts": configOf(`secrets: [{ name: "API_KEY", value: "x", hosts: ["h.test"] }]`),
		"workflows/hold.ts": hold("3Gi", "1")}), s: w.stranger(t)}
	waitFor(t, func() bool { // what the test before had here may be on its way out
		list, err := w.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return !slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return n.DeletionTimestamp != nil })
	})
	w.home(t, "tenant-v", "")
	tt.s.movesIn(t, "tenant-v")
	must(t, tt.up("tenant-b"))
	tt.s.makes(t, sandboxKind, "tenant-b", fmt.Sprintf(`{"apiVersion": %q, "kind": "Sandbox", "metadata": {"name": "of-b", "labels": {%q: "my-instance"}}, "spec": {"image": "i"}}`,
		v1alpha1.GroupVersion(), names.LabelInstance))
	from := number("JR2_TENANTS_FROM", 1)
	for i := range number("JR2_TENANTS", someTenants) + 1 {
		seed := uint64(from + i - 1)
		if i == 0 {
			seed = 0
		}
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { tt.round(t, seed) }) {
			return
		}
	}
	before := tt.state(t)
	must(t, w.down(t, "tenant-b").err)
	w.isAbsent(t, "tenant-b")
	for _, change := range before.changes(tt.state(t)) {
		ours := slices.ContainsFunc([]string{" tenant-b/", "Namespace. /tenant-b", "PersistentVolume. /", "IPAddress.networking.k8s.io /"}, func(part string) bool { return strings.Contains(change, part) })
		if !strings.HasPrefix(change, "gone: ") || !ours {
			t.Errorf("down of B: %s", change)
		}
	}
}

// round is one run of everything: what is in A's namespace is made, edited, and removed.
func (tt *tenants) round(t *testing.T, seed uint64) {
	tt.t = t
	must(t, tt.up("tenant-a"))
	_, err := apply.Apply(t.Context(), tt.Config(), tt.shared(t), apply.Options{Prune: true})
	must(t, err)
	tt.letIn(t)
	before, all := stateOf(t, tt.client.Discovery(), tt.s.objects, "tenant-a")
	e := tt.editorOf(t, "tenant-a", seed, all)
	if seed > 0 {
		for edits := e.edits(); len(e.done) < 40 && e.refused < 400; {
			pick(e, edits)()
		}
		if len(e.done) < 40 {
			t.Fatalf("he could do little: %v, and was refused %d times", e.done, e.refused)
		}
	}
	verbs := tt.verbs(t)
	for _, verb := range verbs {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), tenantVerb)
		err := verb.do(ctx)
		cancel()
		if (verb.must || seed == 0) && err != nil {
			t.Errorf("%s: %v", verb.name, err)
		}
		if err != nil && len(err.Error()) > 20_000 {
			t.Errorf("%s tells %d bytes: %.500s", verb.name, len(err.Error()), err)
		}
		t.Logf("%s: %.1f s, %.300v", verb.name, time.Since(began).Seconds(), err)
		if !verb.look {
			continue
		}
		for _, change := range before.changes(tt.state(t)) {
			t.Errorf("after %s, or what came before it: %.1500s", verb.name, change)
		}
		if t.Failed() {
			t.Fatalf("the edits:\n%s", strings.Join(e.done, "\n"))
		}
	}
	tt.withdraw(t, before)
	tt.clear(t)
}

type adminVerb struct {
	name string
	must bool // it works, whatever A did
	look bool // the cluster is compared after it
	do   func(context.Context) error
}

// verbs are what the admin does: for A, where it may fail and is told why, and for B.
func (tt *tenants) verbs(t *testing.T) []adminVerb {
	store := &shelf{}
	maps, err := tt.client.CoreV1().ConfigMaps("tenant-b").Get(t.Context(), names.ImagesConfig, metav1.GetOptions{})
	must(t, err)
	record, err := images.ParseRecord([]byte(maps.Data[names.ImagesKey]))
	must(t, err)
	store.tags = record.Refs()
	options := func(namespace string) jr2.Options {
		return jr2.Options{Dir: tt.dir, Config: tt.Config(), Context: contextName, Namespace: namespace, Yes: true, Env: map[string]string{}, RegistryTransport: loopbackOnly{http.DefaultTransport}}
	}
	var all []adminVerb
	for _, namespace := range []string{"tenant-a", "tenant-b"} {
		b := namespace == "tenant-b"
		all = append(all,
			adminVerb{"check of " + namespace, true, false, func(ctx context.Context) error {
				report, err := jr2.Check(ctx, options(namespace), preflight.Choice{})
				if !b && ctx.Err() != nil || err != nil {
					return err
				}
				if b && report.Err() != nil {
					return report.Err()
				}
				return nil
			}},
			adminVerb{"plan of " + namespace, b, false, func(ctx context.Context) error {
				plan, err := jr2.MakePlan(ctx, options(namespace))
				if err == nil {
					err = plan.Err()
				}
				if err == nil && b && plan.Changes() > 0 {
					err = fmt.Errorf("%d changes of B", plan.Changes())
				}
				return err
			}},
			adminVerb{"roles of " + namespace, false, false, func(ctx context.Context) error {
				roles, err := jr2.MinimalRoles(ctx, options(namespace), "somebody")
				if strings.Contains(roles, "tenant-v") || strings.Contains(roles, "cluster-admin") || !b && strings.Contains(roles, "tenant-b") {
					t.Errorf("the roles of %s give what is not its:\n%s", namespace, roles)
				}
				return err
			}},
			adminVerb{"up of " + namespace, b, true, func(ctx context.Context) error {
				_, err := jr2.Converge(ctx, options(namespace))
				return err
			}},
			adminVerb{"gc", false, false, func(ctx context.Context) error {
				had := slices.Clone(store.tags)
				_, err := jr2.GC(ctx, jr2.GCOptions{Config: tt.Config(), Context: contextName, Store: store})
				if !slices.Equal(had, store.tags) {
					t.Errorf("gc swept what B needs: %v of %v", store.tags, had)
				}
				return err
			}},
		)
	}
	set := tt.shared(t)
	return append(all,
		adminVerb{"apply of the set that both see", false, true, func(ctx context.Context) error {
			_, err := apply.Apply(ctx, tt.Config(), set, apply.Options{Prune: true, AllowPrune: true, PruneData: everything(tt, t)})
			return err
		}},
		adminVerb{"down of tenant-a", false, true, func(ctx context.Context) error {
			if tt.random(2) == 0 { // without it nothing of others is in the namespace, as far as a removal sees
				must(t, tt.client.RbacV1().RoleBindings("tenant-a").Delete(ctx, "editor", metav1.DeleteOptions{}))
			}
			_, err := jr2.Down(ctx, jr2.DownOptions{Name: "my-instance", Namespace: "tenant-a", Config: tt.Config(), Context: contextName, Yes: true, Timeout: 10 * time.Second})
			return err
		}},
	)
}

// random alternates from round to round.
func (tt *tenants) random(n int) int { return len(tt.t.Name()) * 7 % n }

// everything names what holds data, wherever it is, as an admin would who was told to.
func everything(tt *tenants, t *testing.T) []apply.Ref {
	var refs []apply.Ref
	_, all := stateOf(t, tt.client.Discovery(), tt.s.objects)
	for _, l := range all {
		refs = append(refs, apply.Ref{Group: l.group, Version: l.version, Kind: l.kind, Namespace: l.namespace, Name: l.name})
	}
	return refs
}

func (tt *tenants) up(namespace string) error {
	return tt.world.up(tt.t, tt.dir, into(namespace)).err
}

func (tt *tenants) state(t *testing.T) clusterState {
	state, _ := stateOf(t, tt.client.Discovery(), tt.s.objects, "tenant-a")
	return state
}

// shared is the set: its record is in A's namespace, and its manifests name objects there, elsewhere and cluster-wide.
func (tt *tenants) shared(t *testing.T) *apply.Set {
	t.Helper()
	set, err := apply.NewSet("shared", "tenant-a",
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "tenant-a"}},
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "guest", Namespace: "tenant-v"}},
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: "tenants-shared"}})
	must(t, err)
	return set
}

// letIn gives A's tenant what a platform gives: edit, and the kinds of the operator.
func (tt *tenants) letIn(t *testing.T) {
	t.Helper()
	bind := func(name, kind, role string) {
		_, err := tt.client.RbacV1().RoleBindings("tenant-a").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "tenant-a", Name: "editor"}}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err := tt.client.RbacV1().Roles("tenant-a").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "kinds"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}}}, metav1.CreateOptions{})
	must(t, err)
	bind("editor", "ClusterRole", "edit")
	bind("kinds", "Role", "kinds")
	waitFor(t, func() bool { // the server's own cache of roles
		e := tt.editorOf(t, "tenant-a", 0, nil)
		_, err := e.objects.Resource(leaseKind).Namespace("tenant-a").List(t.Context(), metav1.ListOptions{})
		_, kinds := e.objects.Resource(sandboxKind).Namespace("tenant-a").List(t.Context(), metav1.ListOptions{})
		return err == nil && kinds == nil
	})
}

// withdraw removes the set, of which the record may be gone or broken: nothing of others goes with it.
func (tt *tenants) withdraw(t *testing.T, before clusterState) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tenantVerb)
	defer cancel()
	_, err := apply.Withdraw(ctx, tt.Config(), "shared", "tenant-a", apply.Options{Ready: apply.WaitOptions{Timeout: 5 * time.Second}})
	t.Logf("withdraw: %.300v", err)
	for _, change := range before.changes(tt.state(t)) {
		if change != "gone: ConfigMap. tenant-v/guest" && change != "gone: ClusterRole.rbac.authorization.k8s.io /tenants-shared" {
			t.Errorf("after the withdrawal: %.1500s", change)
		}
	}
}

// clear has A's namespace gone, and what is left of the set, for the next round.
func (tt *tenants) clear(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	must(t, ignoreAbsent(tt.client.CoreV1().ConfigMaps("tenant-v").Delete(ctx, "guest", metav1.DeleteOptions{})))
	must(t, ignoreAbsent(tt.client.RbacV1().ClusterRoles().Delete(ctx, "tenants-shared", metav1.DeleteOptions{})))
	must(t, ignoreAbsent(tt.client.CoreV1().Namespaces().Delete(ctx, "tenant-a", metav1.DeleteOptions{})))
	waitFor(t, func() bool {
		for _, kind := range editable {
			list, err := tt.s.objects.Resource(kind).Namespace("tenant-a").List(ctx, metav1.ListOptions{})
			must(t, err)
			for _, o := range list.Items {
				if len(o.GetFinalizers()) > 0 {
					_, err := tt.s.objects.Resource(kind).Namespace("tenant-a").Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
					must(t, ignoreAbsent(err))
				}
			}
		}
		_, err := tt.client.CoreV1().Namespaces().Get(ctx, "tenant-a", metav1.GetOptions{})
		return err != nil
	})
}
