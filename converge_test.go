package jr2_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// TestSecondConvergeChangesNothing is the promise of a steady state: no object written, no pod rolled, no Assembly published.
func TestSecondConvergeChangesNothing(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	for name, files := range map[string]map[string]string{
		"steady-ping": {"jr2.config.ts": plainConfig, "workflows/ping.ts": ping},
		"steady-hold": {"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1500m")},
	} {
		dir := folder(t, files)
		first := w.up(t, dir, into(name))
		must(t, first.err)
		if first.result.Changed == 0 {
			t.Errorf("%s: the first converge changed nothing:\n%s", name, first.lines)
		}
		before := w.versions(t, name)
		second := w.up(t, dir, into(name))
		must(t, second.err)
		if second.result.Changed != 0 {
			t.Errorf("%s: the second converge changed %d:\n%s", name, second.result.Changed, second.lines)
		}
		second.tells(t, []string{"…", "nothing changed: no image built, no object written, no pod rolled", "converged — `jr2 run <workflow>` when ready"})
		for object, version := range w.versions(t, name) {
			if before[object] != version {
				t.Errorf("%s: %s was written again", name, object)
			}
		}
	}
}

// versions are the resource versions of the objects that a converge writes and that no controller touches.
func (w *world) versions(t *testing.T, namespace string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	maps, err := w.client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, o := range maps.Items {
		versions["ConfigMap "+o.Name] = o.ResourceVersion
	}
	secrets, err := w.client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, o := range secrets.Items {
		versions["Secret "+o.Name] = o.ResourceVersion
	}
	deployments, err := w.client.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, o := range deployments.Items {
		versions["Deployment "+o.Name] = o.ResourceVersion
	}
	return versions
}

// TestTokensAreKept: live Sandboxes hold tokens signed with the key of the first converge.
func TestTokensAreKept(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("tokens")).err)
	secret := func() map[string][]byte {
		s, err := w.client.CoreV1().Secrets("tokens").Get(t.Context(), names.InstanceSecret, metav1.GetOptions{})
		must(t, err)
		return s.Data
	}
	before := secret()
	must(t, w.up(t, dir, into("tokens"), func(o *jr2.Options) { o.Force = true }).err)
	for key, value := range secret() {
		if string(before[key]) != string(value) {
			t.Errorf("%s was minted again", key)
		}
	}
	if len(before) < 3 {
		t.Errorf("the Secret has %d keys", len(before))
	}
}

// TestTwoInstancesShareOneOperator: the second Instance leaves the operator as it is, and each keeps its own namespace.
func TestTwoInstancesShareOneOperator(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	one := folder(t, map[string]string{"jr2.config.ts": configOf(`name: "one"`), "workflows/ping.ts": ping})
	two := folder(t, map[string]string{"jr2.config.ts": configOf(`name: "two"`), "workflows/hold.ts": hold("3Gi", "1")})
	must(t, w.up(t, one).err)
	told := w.up(t, two)
	must(t, told.err)
	for _, object := range told.result.Objects {
		if object.Ref.Namespace == names.OperatorNamespace && object.Action != apply.Unchanged {
			t.Errorf("the second Instance %s %s", object.Action, object.Ref)
		}
	}
	if again := w.up(t, one); again.err != nil || again.result.Changed != 0 {
		t.Errorf("the first Instance was touched: %v\n%s", again.err, again.lines)
	}
	if stolen := w.up(t, two, into("one")); stolen.err == nil || !strings.HasPrefix(stolen.lastLine(), "refusing: namespace \"one\"") {
		t.Errorf("the second Instance took the first one's namespace: %s", stolen.lastLine())
	}
}

// TestNewerOperatorIsLeftAlone: jr2 does not downgrade the operator that all Instances share.
func TestNewerOperatorIsLeftAlone(t *testing.T) {
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("newer-operator")).err)
	deployments := w.client.AppsV1().Deployments(names.OperatorNamespace)
	label := func(version string) {
		patch := []byte(`{"metadata":{"labels":{"` + names.LabelVersion + `":"` + version + `"}}}`)
		_, err := deployments.Patch(t.Context(), names.OperatorDeployment, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "jr2"})
		must(t, err)
	}
	label("99.0.0")
	told := w.up(t, dir, into("newer-operator"))
	label(config.DefaultKitVersion)
	must(t, told.err)
	must(t, w.up(t, dir, into("newer-operator")).err) // the label is the converge's again, before others rely on the operator
	told.tells(t, []string{"…", "operator: v99.0.0 runs here, newer than this Kit's v" + config.DefaultKitVersion + " — left alone"})
	if strings.Contains(told.lines, "operator: verified") {
		t.Error("a foreign operator was verified")
	}
}

// TestWhatIsNoLongerNeededIsRemoved: the last Machine that makes a Sandbox takes the Repo cache with it.
func TestWhatIsNoLongerNeededIsRemoved(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	with := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1"), "workflows/ping.ts": ping})
	without := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, with, into("shrinking")).err)
	caches := func() int {
		list, err := w.client.AppsV1().DaemonSets("shrinking").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return len(list.Items)
	}
	if caches() != 1 {
		t.Fatal("no Repo cache was applied")
	}
	told := w.up(t, without, into("shrinking"))
	must(t, told.err)
	if caches() != 0 {
		t.Errorf("the Repo cache is still there:\n%s", told.lines)
	}
}

// TestOwnPriorityClasses: jr2 creates no class for a key that the configuration sets, and names what it uses.
func TestOwnPriorityClasses(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.classes(t, "platform-critical")
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`priorityClasses: { control: "platform-critical" }`), "workflows/ping.ts": ping})
	told := w.up(t, dir, into("own-classes"))
	must(t, told.err)
	told.tells(t, []string{"…", `priority: the Instance's own — control "platform-critical"`})
	deployment, err := w.client.AppsV1().Deployments("own-classes").Get(t.Context(), names.Orchestrator, metav1.GetOptions{})
	must(t, err)
	if class := deployment.Spec.Template.Spec.PriorityClassName; class != "platform-critical" {
		t.Errorf("the Orchestrator's class is %q", class)
	}
}

// TestGoValue converges an Instance that no folder holds.
func TestGoValue(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	instance := &config.Instance{Name: "no-folder", KitVersion: config.DefaultKitVersion, Workflows: []config.Workflow{{Name: "ping"}}}
	told := w.up(t, "", func(o *jr2.Options) { o.Instance = instance })
	must(t, told.err)
	if got := strings.Join(told.result.Workflows, ", "); got != "ping" {
		t.Errorf("the Assembly has the Workflows %q", got)
	}
}
