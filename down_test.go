package jr2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// A felled Instance: what its removal told.
type felled struct {
	lines  string
	result *jr2.DownResult
	err    error
}

// down removes the Instance my-instance from a namespace.
func (w *world) down(t *testing.T, namespace string, change ...func(*jr2.DownOptions)) felled {
	t.Helper()
	var lines bytes.Buffer
	options := jr2.DownOptions{
		Name: "my-instance", Namespace: namespace, Config: w.Config(), Context: contextName, Yes: true, Events: jr2.Narrate(&lines),
	}
	for _, c := range change {
		c(&options)
	}
	result, err := jr2.Down(t.Context(), options)
	if err != nil {
		fmt.Fprintln(&lines, jr2.NarrateError(err))
	}
	return felled{lines: lines.String(), result: result, err: err}
}

// home makes a namespace of an Instance, as a converge makes it, without converging; without an Instance it is anybody's.
func (w *world) home(t *testing.T, namespace, instance string) {
	t.Helper()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if instance != "" {
		home.Labels, home.Annotations = map[string]string{names.LabelInstance: instance}, map[string]string{names.AnnotationMadeBy: instance}
	}
	_, err := w.client.CoreV1().Namespaces().Create(t.Context(), home, metav1.CreateOptions{FieldManager: apply.DefaultFieldManager})
	must(t, err)
}

// stays checks that a namespace is there and not being deleted.
func (w *world) stays(t *testing.T, namespace string) {
	t.Helper()
	now, err := w.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp != nil {
		t.Errorf("namespace %s was touched: %v", namespace, err)
	}
}

func plainFolder(t *testing.T) string {
	t.Helper()
	return folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
}

// TestDown removes a converged Instance, found by its folder; the second time it is not there.
func TestDown(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	must(t, w.up(t, dir, into("down-plain")).err)
	byFolder := func(o *jr2.DownOptions) { o.Name, o.Dir = "", dir }
	told := w.down(t, "down-plain", byFolder)
	must(t, told.err)
	w.isAbsent(t, "down-plain")
	w.stays(t, names.OperatorNamespace)
	lines := strings.Split(strings.TrimSpace(told.lines), "\n")
	if lines[0] != `jr2 down — instance "my-instance" → context shared / namespace down-plain` ||
		lines[1] != "namespace down-plain: deleted — waiting until everything in it is gone" ||
		lines[len(lines)-3] != "namespace down-plain: gone" ||
		lines[len(lines)-2] != "left in place: PriorityClasses jr2-control, jr2-sandbox; /var/lib/jr2/down-plain/repos on the nodes; images in the registry" ||
		lines[len(lines)-1] != `removed — instance "my-instance" is gone from shared` || !told.result.Gone {
		t.Errorf("told\n%s", told.lines)
	}
	var absent *jr2.NotDeployedError
	if again := w.down(t, "down-plain", byFolder); !errors.As(again.err, &absent) || absent.Unlabelled {
		t.Errorf("the second time: %v", again.err)
	}
}

// TestDownTouchesNothing: whatever stops a removal before its first write.
func TestDownTouchesNothing(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "down-theirs", "elder")
	w.home(t, "down-nobodys", "")
	w.home(t, "down-ours", "my-instance")
	foreign := w.down(t, "down-theirs")
	var refusal *jr2.Refusal
	if !errors.As(foreign.err, &refusal) || refusal.Findings[0].Code != preflight.CodeNamespaceOwner ||
		!strings.Contains(foreign.lines, "\nrefusing: namespace \"down-theirs\" on shared belongs to another instance (\"elder\"). Give") {
		t.Errorf("another owner: %s", foreign.lines)
	}
	var absent *jr2.NotDeployedError
	if nobodys := w.down(t, "down-nobodys"); !errors.As(nobodys.err, &absent) || !absent.Unlabelled {
		t.Errorf("no label: %v", nobodys.err)
	}
	onlyAsked := jr2.Removal{}
	all := w.down(t, "down-nobodys", func(o *jr2.DownOptions) { // the operator is there, and is all that would go
		o.All, o.Yes = true, false
		o.Confirm = func(_ context.Context, r jr2.Removal) (bool, error) { onlyAsked = r; return false, nil }
	})
	if !errors.Is(all.err, jr2.ErrDeclined) || !onlyAsked.Absent {
		t.Errorf("no label, all: %v, %+v", all.err, onlyAsked)
	}
	asked := ""
	declined := w.down(t, "down-ours", func(o *jr2.DownOptions) {
		o.Yes, o.Confirm = false, func(_ context.Context, r jr2.Removal) (bool, error) { asked = r.Question(); return false, nil }
	})
	if !errors.Is(declined.err, jr2.ErrDeclined) || asked != `remove instance "my-instance" from context shared (delete namespace "down-ours" and everything in it)? [y/N] ` {
		t.Errorf("declined: %v after %q", declined.err, asked)
	}
	var unconfirmed *jr2.UnconfirmedError
	if nobody := w.down(t, "down-ours", func(o *jr2.DownOptions) { o.Yes = false }); !errors.As(nobody.err, &unconfirmed) {
		t.Errorf("nobody to ask: %v", nobody.err)
	}
	for _, namespace := range []string{"down-theirs", "down-nobodys", "down-ours"} {
		w.stays(t, namespace)
	}
}

// TestDownIsHeld: a finalizer holds a ConfigMap; the error names it, and when it is gone the next removal completes.
func TestDownIsHeld(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "down-held", "my-instance")
	maps := w.client.CoreV1().ConfigMaps("down-held")
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "kept", Finalizers: []string{"example.test/hold"}, Labels: map[string]string{names.LabelInstance: "my-instance", names.LabelManagedBy: names.ManagedBy},
	}}, metav1.CreateOptions{FieldManager: apply.DefaultFieldManager})
	must(t, err)
	told := w.down(t, "down-held", func(o *jr2.DownOptions) { o.Timeout = 20 * time.Second })
	var held *jr2.HeldError
	if !errors.As(told.err, &held) || held.Object != "Namespace down-held" || !strings.Contains(told.err.Error(), "example.test/hold") || !strings.Contains(told.err.Error(), "configmaps") {
		t.Errorf("got %v", told.err)
	}
	if !strings.Contains(told.lines, "\n  namespace down-held waits: ") {
		t.Errorf("told\n%s", told.lines)
	}
	_, err = maps.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	if again := w.down(t, "down-held"); again.err != nil {
		var absent *jr2.NotDeployedError // the server may have been faster
		if !errors.As(again.err, &absent) {
			t.Errorf("after that: %v", again.err)
		}
	}
	w.isAbsent(t, "down-held")
}

// TestDownWaitsForAConverge: what holds the lock is waited for and named.
func TestDownWaitsForAConverge(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "down-locked", "my-instance")
	_, release, err := apply.Lock(t.Context(), w.client, "down-locked", "jr2-converge", "bo@desk", apply.LockOptions{})
	must(t, err)
	defer release()
	waited := false
	told := w.down(t, "down-locked", func(o *jr2.DownOptions) {
		o.Events = func(e jr2.Event) {
			if waiting, ok := e.(jr2.LockWaiting); ok {
				waited = waiting.Holder == "bo@desk"
				w.stays(t, "down-locked")
				go release()
			}
		}
	})
	must(t, told.err)
	if !waited {
		t.Error("nobody waited")
	}
	w.isAbsent(t, "down-locked")
}

// TestDownAll names the other Instance, and takes the operator with all that it consists of.
func TestDownAll(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	dir := plainFolder(t)
	must(t, w.up(t, dir, into("down-all")).err)
	w.home(t, "down-other", "other")
	var asked jr2.Removal
	told := w.down(t, "down-all", func(o *jr2.DownOptions) {
		o.All, o.Yes = true, false
		o.Confirm = func(_ context.Context, r jr2.Removal) (bool, error) { asked = r; return true, nil }
	})
	must(t, told.err)
	if !strings.Contains(asked.Question(), `"other" in namespace "down-other"`) || !strings.Contains(asked.Question(), "the Sandboxes and Repos of every Instance") {
		t.Errorf("asked %q", asked.Question())
	}
	w.isAbsent(t, "down-all")
	w.stays(t, "down-other")
	w.noOperator(t)
	pruned := 0
	for _, object := range told.result.Operator {
		if object.Action == apply.Pruned {
			pruned++
		}
	}
	if pruned < 8 {
		t.Errorf("removed %v", told.result.Operator)
	}
	must(t, w.up(t, dir, into("down-all")).err) // and it all comes back
	must(t, w.down(t, "down-all").err)
}

// noOperator checks that nothing of the operator is left.
func (w *world) noOperator(t *testing.T) {
	t.Helper()
	w.isAbsent(t, names.OperatorNamespace)
	for _, path := range []string{"/apis/core.jr2.dev/v1alpha1", "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + names.ManagerRole,
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + names.ManagerBinding} {
		_, err := w.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		if !apierrors.IsNotFound(err) && !strings.HasPrefix(path, "/apis/core") {
			t.Errorf("%s: %v", path, err)
		}
	}
	raw, err := w.client.Discovery().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").DoRaw(t.Context())
	if err != nil || strings.Contains(string(raw), ".jr2.dev\"") {
		t.Errorf("kinds are left: %v", err)
	}
}

// TestDownWithoutTheRight is one clear error.
func TestDownWithoutTheRight(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "down-forbidden", "my-instance")
	ctx := t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "down-reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}},
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}},
	}}
	_, err := w.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	must(t, err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "down-reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "down-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "reader"}},
	}, metav1.CreateOptions{})
	must(t, err)
	told := w.down(t, "down-forbidden", func(o *jr2.DownOptions) {
		o.Config = rest.CopyConfig(o.Config)
		o.Config.Impersonate = rest.ImpersonationConfig{UserName: "reader"}
	})
	if apply.Classify(told.err) != apply.ClassForbidden || !strings.Contains(told.err.Error(), `delete namespace "down-forbidden" on shared`) || strings.Contains(told.err.Error(), "\n") {
		t.Errorf("got %v", told.err)
	}
	w.stays(t, "down-forbidden")
}

// TestKilledDownIsCompleted kills the command in each half of a removal of everything, at random moments; the next one completes it.
func TestKilledDownIsCompleted(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	command := buildCommand(t)
	dir := plainFolder(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	down := func(ctx context.Context, namespace string) error {
		run := exec.CommandContext(ctx, command, "down", dir, "--yes", "--all", "--kubeconfig", w.Kubeconfig(), "-n", namespace)
		out, err := run.CombinedOutput()
		if err != nil && strings.Contains(string(out), "is not deployed here") {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		return nil
	}
	must(t, w.up(t, dir, into("down-kill")).err)
	began := time.Now()
	must(t, down(t.Context(), "down-kill"))
	whole, cut := time.Since(began), 0
	const halves = 2
	for i := range halves {
		namespace := fmt.Sprintf("down-kill-%d", i)
		must(t, w.up(t, dir, into(namespace)).err)
		moment, cancel := context.WithTimeout(t.Context(), within(random, whole, i, halves))
		if down(moment, namespace) != nil {
			cut++
		}
		cancel()
		must(t, down(t.Context(), namespace))
		w.isAbsent(t, namespace)
		w.noOperator(t)
	}
	if cut == 0 {
		t.Error("no removal was cut off")
	}
}

// A removal from a cluster that nobody serves.
func ExampleDown() {
	result, err := jr2.Down(context.Background(), jr2.DownOptions{
		Instance: &config.Instance{Name: "app", KitVersion: config.DefaultKitVersion},
		Config:   &rest.Config{Host: "https://127.0.0.1:1"}, Context: "shared", Yes: true,
	})
	var unreachable *jr2.UnreachableError
	fmt.Println(errors.As(err, &unreachable), result.Instance, result.Gone)
	// Output: true app false
}

func ExampleRemoval_Question() {
	fmt.Printf("%q\n", jr2.Removal{Instance: "app", Context: "shared", Namespace: "team-a"}.Question())
	// Output: "remove instance \"app\" from context shared (delete namespace \"team-a\" and everything in it)? [y/N] "
}
