package jr2_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// as is the admin's way to the cluster, taken for another user.
func (w *world) as(user string) func(*jr2.Options) {
	return func(o *jr2.Options) {
		o.Config = w.Config()
		o.Config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
}

// roles reads the stream that MinimalRoles gives, as kubectl would.
func (w *world) roles(t *testing.T, dir, user string, change ...func(*jr2.Options)) []runtime.Object {
	t.Helper()
	options := jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Env: map[string]string{}}
	for _, c := range change {
		c(&options)
	}
	stored := w.watched(t, &options)
	text, err := jr2.MinimalRoles(t.Context(), options, user)
	must(t, err)
	wroteNothing(t, "looking for the smallest roles", stored())
	var objs []runtime.Object
	for doc := range strings.SplitSeq(text, "---\n") {
		raw, err := yaml.YAMLToJSONStrict([]byte(doc))
		must(t, err)
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		must(t, err)
		objs = append(objs, o)
	}
	return objs
}

// give makes the objects of a stream.
func (w *world) give(t *testing.T, objs []runtime.Object) {
	t.Helper()
	ctx, rbac := t.Context(), w.client.RbacV1()
	for _, o := range objs {
		var err error
		switch o := o.(type) {
		case *corev1.Namespace:
			_, err = w.client.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRole:
			_, err = rbac.ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = rbac.ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.Role:
			_, err = rbac.Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = rbac.RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		}
		must(t, err)
	}
}

// A single right of a stream of roles.
type single struct {
	role                  int // its place in the stream
	verb, group, resource string
}

func singles(objs []runtime.Object) []single {
	var all []single
	for i, o := range objs {
		for _, rule := range *rulesOf(o) {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						if one := (single{i, verb, group, resource}); !slices.Contains(all, one) {
							all = append(all, one)
						}
					}
				}
			}
		}
	}
	return all
}

func rulesOf(o runtime.Object) *[]rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		return &o.Rules
	case *rbacv1.Role:
		return &o.Rules
	}
	return &[]rbacv1.PolicyRule{}
}

// without are the roles of another user, less a single right, under other names.
func without(objs []runtime.Object, gone single, user string) []runtime.Object {
	var all []runtime.Object
	for i, o := range objs {
		o = o.DeepCopyObject()
		rules := rulesOf(o)
		var kept []rbacv1.PolicyRule
		for _, rule := range *rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					part := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames}
					for _, verb := range rule.Verbs {
						if (single{i, verb, group, resource}) != gone {
							part.Verbs = append(part.Verbs, verb)
						}
					}
					if len(part.Verbs) > 0 {
						kept = append(kept, part)
					}
				}
			}
		}
		*rules = kept
		switch o := o.(type) {
		case *corev1.Namespace:
			continue
		case *rbacv1.ClusterRole:
			o.Name += "-" + user
		case *rbacv1.Role:
			o.Name += "-" + user
		case *rbacv1.ClusterRoleBinding:
			o.Name, o.RoleRef.Name, o.Subjects[0].Name = o.Name+"-"+user, o.RoleRef.Name+"-"+user, user
		case *rbacv1.RoleBinding:
			o.Name, o.RoleRef.Name, o.Subjects[0].Name = o.Name+"-"+user, o.RoleRef.Name+"-"+user, user
		}
		all = append(all, o)
	}
	return all
}

// eachMissing takes each single right of roles, or each of some, away in turn: the converge of a user who lacks it is refused before anything is
// written, and the check of each tells it once, by name.
func (w *world) eachMissing(t *testing.T, dir, namespace, prefix string, objs []runtime.Object, once func(*jr2.Options), some func(single) bool) {
	t.Helper()
	user := func(i int) string { return fmt.Sprint(prefix, "-", i) }
	last := 0
	for i, gone := range singles(objs) {
		if !some(gone) {
			continue
		}
		last = i
		w.give(t, without(objs, gone, user(i)))
	}
	w.knows(t, user(last), objs)
	t.Run("lacks", func(t *testing.T) {
		for i, gone := range singles(objs) {
			if some(gone) {
				t.Run(fmt.Sprintf("%s %s.%s", gone.verb, gone.resource, gone.group), func(t *testing.T) {
					t.Parallel()
					w.missing(t, dir, namespace, user(i), gone, once)
				})
			}
		}
	})
}

// missing converges as a user who lacks one right, and checks as him.
func (w *world) missing(t *testing.T, dir, namespace, user string, gone single, once func(*jr2.Options)) {
	t.Helper()
	var writes writes
	up := w.up(t, dir, into(namespace), once, w.as(user), func(o *jr2.Options) { o.Config.Wrap(writes.wrap) })
	if up.err == nil || len(writes.all()) > 0 {
		t.Errorf("%v, wrote %s", up.err, writes.all())
	}
	report := w.check(t, dir, preflight.Choice{}, into(namespace), once, w.as(user))
	told := func(f preflight.Finding) bool {
		named := strings.Contains(f.Message, gone.verb) && strings.Contains(f.Message, gone.resource)
		return f.Code == preflight.CodeEscalation || f.Code == preflight.CodeRightMissing && named
	}
	if !slices.ContainsFunc(report.Findings, told) {
		t.Errorf("the check says\n%s", report)
	}
	if !strings.Contains(report.Roles, "name: jr2-converge-"+namespace) || !strings.Contains(report.Roles, "name: "+user) {
		t.Errorf("the roles that would do are\n%s", report.Roles)
	}
	for i, f := range report.Findings {
		if slices.ContainsFunc(report.Findings[:i], func(other preflight.Finding) bool {
			return other.Code == f.Code && other.Object == f.Object && f.Code == preflight.CodeRightMissing
		}) {
			t.Errorf("told twice: %s\n%s", f.Object, report)
		}
	}
}

// TestMinimalRights: a user who has what MinimalRoles prints converges, and one who lacks any single right of it is refused before anything is
// written, by name of the right.
func TestMinimalRights(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	w.withoutOperator(t)
	for _, o := range []interface {
		DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	}{w.client.RbacV1().ClusterRoles(), w.client.RbacV1().ClusterRoleBindings(), w.client.RbacV1().Roles(names.OperatorNamespace), w.client.RbacV1().RoleBindings(names.OperatorNamespace)} {
		must(t, o.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: names.LabelManagedBy + "=" + names.ManagedBy}))
	}
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	once := read(t, dir)
	objs := w.roles(t, dir, "minimal", into("rights"), once)
	w.give(t, objs)
	w.eachMissing(t, dir, "rights", "lacks", objs, once, func(single) bool { return true })

	report := w.check(t, dir, preflight.Choice{}, into("rights"), once, w.as("minimal"))
	if report.Err() != nil {
		t.Errorf("with all rights the check says\n%s", report)
	}
	for _, run := range []string{"first", "second"} {
		if up := w.up(t, dir, into("rights"), once, w.as("minimal")); up.err != nil {
			t.Errorf("the %s converge: %v", run, up.err)
		}
	}
}

// TestMinimalRightsOfAPrune: a converge that removes what its Instance no longer needs, here the Repo cache, is asked about the right to delete
// that too. What left and is gone, or is another's by now, needs no such right.
func TestMinimalRightsOfAPrune(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	settings := configOf(`operator: { manage: false }, platforms: ["linux/amd64"]`)
	before := folder(t, map[string]string{"jr2.config.ts": settings, "workflows/hold.ts": hold("3Gi", "1")})
	must(t, w.up(t, before, into("rights-prune")).err)
	dir := folder(t, map[string]string{"jr2.config.ts": settings, "workflows/ping.ts": ping})
	once := read(t, dir)
	objs := w.roles(t, dir, "pruner", into("rights-prune"), once)
	deletes := slices.DeleteFunc(singles(objs), func(one single) bool { return one.verb != "delete" })
	if len(deletes) < 3 {
		t.Fatalf("the roles let delete %v", deletes)
	}
	w.give(t, objs)
	w.eachMissing(t, dir, "rights-prune", "pruner-lacks", objs, once, func(one single) bool { return one.verb == "delete" }) // TestMinimalRights has the others

	if up := w.up(t, dir, into("rights-prune"), once, w.as("pruner")); up.err != nil {
		t.Errorf("with all rights: %v", up.err)
	}
	ctx, caches := t.Context(), metav1.ListOptions{LabelSelector: "app=" + names.RepoCacheName}
	if left, err := w.client.AppsV1().DaemonSets("rights-prune").List(ctx, caches); err != nil || len(left.Items) > 0 {
		t.Errorf("the Repo cache is still there: %v", err)
	}
	if report := w.check(t, dir, preflight.Choice{}, into("rights-prune"), once, w.as("pruner-lacks-"+fmt.Sprint(slices.Index(singles(objs), deletes[0])))); report.Err() != nil {
		t.Errorf("when it is gone:\n%s", report)
	}
}

// read is the Instance of a folder, so that it is evaluated once and not for each right.
func read(t *testing.T, dir string) func(*jr2.Options) {
	t.Helper()
	inst, err := config.Load(t.Context(), config.LoadOptions{Dir: dir})
	must(t, err)
	return func(o *jr2.Options) { o.Instance = inst }
}

// knows waits until the authorizer has heard of the roles.
func (w *world) knows(t *testing.T, user string, objs []runtime.Object) {
	t.Helper()
	config := w.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := kubernetes.NewForConfig(unlimited(config))
	must(t, err)
	for _, o := range objs {
		binding, ok := o.(*rbacv1.RoleBinding)
		if !ok {
			continue
		}
		must(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "list", Resource: "pods", Namespace: binding.Namespace}}}
			answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, nil
		}))
	}
}

// TestNoFalseRefusalOfRights: an admin of the cluster, and an admin of a namespace in a cluster where all that lives in no namespace was made
// before, miss nothing.
func TestNoFalseRefusalOfRights(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`operator: { manage: false }, platforms: ["linux/amd64"], priorityClasses: { control: "system-cluster-critical", sandbox: "system-node-critical" }`), "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("rights-admin")).err) // it makes the namespace
	w.give(t, []runtime.Object{
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "admin", Namespace: "rights-admin"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "homely"}}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "leases", Namespace: "rights-admin"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "leases", Namespace: "rights-admin"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "leases"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "homely"}}},
	})
	w.knows(t, "homely", []runtime.Object{&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "rights-admin"}}})
	for user, change := range map[string]func(*jr2.Options){"the cluster's admin": func(*jr2.Options) {}, "the namespace's admin": w.as("homely")} {
		report := w.check(t, dir, preflight.Choice{}, into("rights-admin"), change)
		for _, f := range report.Findings {
			if f.Severity == preflight.Refuse {
				raw, _ := json.Marshal(f)
				t.Errorf("%s: %s", user, raw)
			}
		}
		if up := w.up(t, dir, into("rights-admin"), change); up.err != nil {
			t.Errorf("%s: %v", user, up.err)
		}
	}
	var refusal *jr2.Refusal
	if up := w.up(t, dir, into("rights-nobody"), w.as("nobody")); up.err == nil || errors.As(up.err, &refusal) && len(refusal.Findings) == 0 {
		t.Errorf("nobody converges: %v", up.err)
	}
}
