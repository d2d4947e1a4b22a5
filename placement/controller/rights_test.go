package controller_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestOperatorRights runs the controller as the account that a converge makes for the operator, with a leader election as it asks for.
func TestOperatorRights(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	kit, err := render.KitOf("0.3.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Operator(render.Input{Instance: &config.Instance{Name: "my-instance"}, Kit: kit})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if o, ok := object.(client.Object); ok && object.GetObjectKind().GroupVersionKind().Kind != "Deployment" {
			if err := s.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) { // the kinds are there
				t.Fatal(err)
			}
		}
	}
	account := "system:serviceaccount:" + names.OperatorNamespace + ":" + names.OperatorAccount
	cfg := shared.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + names.OperatorNamespace, "system:authenticated"}}
	s.limit("q", "pods", "0")
	denied, clock := &denials{}, stopped()
	stop := s.start(denied.watch(cfg), controller.Options{LeaderElection: true, LeaderElectionNamespace: names.OperatorNamespace, Clock: clock})
	s.create(sandbox("a", func(b *v1alpha1.Sandbox) {
		b.Spec.Repos = []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}}
	}))
	s.reason("a", v1alpha1.ConditionScheduled, v1alpha1.ReasonQuotaExceeded)
	s.repo("app")
	s.limit("q", "pods", "1") // seen by the watch, for which there is a right
	s.reason("a", v1alpha1.ConditionReady, v1alpha1.ReasonRepoPending)
	s.deletePodIfAny("a") // and then the node is read
	box := s.phase("a", v1alpha1.SandboxLost)
	box.Spec.IdleTimeout = &metav1.Duration{Duration: time.Second}
	clock.SetTime(clock.Now().Add(time.Hour))
	if err := s.Update(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	s.gone("a")
	stop()
	if refused := denied.list(); len(refused) > 0 {
		t.Errorf("refused: %s", strings.Join(refused, ", "))
	}
}

// TestLeaderElection: the second waits until the first has gone, and then goes on at once.
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	opts := controller.Options{LeaderElection: true, LeaderElectionNamespace: s.namespace, LeaderElectionID: "test"}
	stop := s.start(nil, opts)
	s.create(sandbox("a"))
	s.phase("a", v1alpha1.SandboxReady)
	s.start(nil, opts)
	s.create(sandbox("b"))
	s.phase("b", v1alpha1.SandboxReady)
	stop()
	s.create(sandbox("c"))
	s.phase("c", v1alpha1.SandboxReady)
	if err := controller.Run(t.Context(), shared.Config(), controller.Options{LeaderElection: true}); !errors.Is(err, controller.ErrNoElectionNamespace) {
		t.Errorf("got %v", err)
	}
}

// TestNamespacedRights: an embedder with rights in one namespace, and none on quotas or nodes, has a controller there.
func TestNamespacedRights(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.grant("embedder", names.ManagerRole+"-"+s.namespace)
	cfg := shared.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "embedder", Groups: []string{"system:authenticated"}}
	s.start(cfg, controller.Options{})
	s.create(sandbox("a"))
	s.phase("a", v1alpha1.SandboxReady)
	s.deletePodIfAny("a")
	if box := s.phase("a", v1alpha1.SandboxLost); reasonOf(box, v1alpha1.ConditionLost) != v1alpha1.ReasonPodDeleted {
		t.Errorf("%+v", box.Status)
	}
}

// TestRunSaysWhichRightsAreMissing: each single right that Run needs, taken away, ends it at once with that right, and nothing else.
func TestRunSaysWhichRightsAreMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	role := s.grant("stripped", names.ManagerRole+"-stripped")
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}})
	whole := role.Rules
	cfg := shared.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "stripped", Groups: []string{"system:authenticated"}}
	opts := controller.Options{LeaderElection: true, LeaderElectionNamespace: s.namespace, LeaderElectionID: "stripped", Namespaces: []string{s.namespace}}
	for i, rule := range whole {
		for v, verb := range rule.Verbs {
			without := slices.Clone(whole)
			without[i].Verbs = slices.Delete(slices.Clone(rule.Verbs), v, v+1)
			if len(without[i].Verbs) == 0 {
				without = slices.Delete(without, i, i+1)
			}
			role.Rules = without
			if err := s.Update(t.Context(), role); err != nil {
				t.Fatal(err)
			}
			for _, resource := range rule.Resources {
				s.until("the right is gone", func() bool { return !s.may("stripped", verb, rule.APIGroups[0], resource) })
			}
			s.until("the others are there", func() bool {
				return s.mayAll("stripped", without)
			})
			var missing *controller.RightsError
			if err := controller.Run(t.Context(), cfg, opts); !errors.As(err, &missing) || len(missing.Missing) != len(rule.Resources) {
				t.Fatalf("without %s on %v: %v", verb, rule.Resources, err)
			}
			for _, resource := range rule.Resources {
				group := strings.TrimSuffix("."+rule.APIGroups[0], ".")
				name, sub, _ := strings.Cut(resource, "/")
				want := verb + " " + name + group + strings.TrimSuffix("/"+sub, "/") + " in namespace " + s.namespace
				if !slices.Contains(missing.Missing, want) {
					t.Errorf("no %q in %q", want, missing.Missing)
				}
			}
		}
	}
}

// may asks the server what a user may do in the namespace of the test.
func (s *site) may(user, verb, group, resource string) bool {
	s.Helper()
	name, sub, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: s.namespace, Verb: verb, Group: group, Resource: name, Subresource: sub}}}
	if err := s.Create(s.Context(), review); err != nil {
		s.Fatal(err)
	}
	return review.Status.Allowed
}

func (s *site) mayAll(user string, rules []rbacv1.PolicyRule) bool {
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if !s.may(user, verb, rule.APIGroups[0], resource) {
					return false
				}
			}
		}
	}
	return true
}

// grant gives a user the least that Run asks for, in the namespace of the test.
func (s *site) grant(user, name string) *rbacv1.Role {
	s.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "watch", "create"}},
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"sandboxes"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"repos"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"sandboxes/status", "repos/status"}, Verbs: []string{"patch"}},
	}}
	s.create(role)
	s.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})
	return role
}

// denials are the requests that were refused for want of a right; a refusal by a quota is none.
type denials struct {
	mu  sync.Mutex
	all []string
}

func (d *denials) watch(cfg *rest.Config) *rest.Config {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && response.StatusCode == http.StatusForbidden && !(r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods")) {
				d.mu.Lock()
				d.all = append(d.all, r.Method+" "+r.URL.Path)
				d.mu.Unlock()
			}
			return response, err
		})
	})
	return cfg
}

func (d *denials) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all
}
