package jr2_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// ofCode are the findings of one code.
func ofCode(report *jr2.Report, code string) []preflight.Finding {
	return slices.DeleteFunc(slices.Clone(report.Findings), func(f preflight.Finding) bool { return f.Code != code })
}

// TestFixesOfWhatNobodyCanTakeOver: what another made and nobody can change, or nobody can read, is mended by its deletion, and what is typed helps.
func TestFixesOfWhatNobodyCanTakeOver(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "fixed-theirs"
	w.home(t, home, "my-instance")
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	_, err := w.client.RbacV1().RoleBindings(home).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: names.Orchestrator},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = w.client.CoreV1().ConfigMaps(home).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "jr2-inventory-jr2-instance"},
		Data: map[string]string{"inventory.json": "{"}}, metav1.CreateOptions{})
	must(t, err)
	for _, want := range []preflight.Finding{
		{Code: preflight.CodeInventory, Object: "ConfigMap " + home + "/jr2-inventory-jr2-instance", Fix: "kubectl -n " + home + " delete configmap jr2-inventory-jr2-instance"},
		{Code: preflight.CodeImmutable, Object: "RoleBinding.rbac.authorization.k8s.io " + home + "/" + names.Orchestrator,
			Fix: "kubectl -n " + home + " delete rolebinding.rbac.authorization.k8s.io " + names.Orchestrator},
	} {
		report := w.check(t, dir, preflight.Choice{}, into(home), func(o *jr2.Options) { o.Adopt = true })
		found := ofCode(report, want.Code)
		if len(found) != 1 || found[0].Object != want.Object || found[0].Fix != want.Fix || len(ofCode(report, preflight.CodeUnexplained)) > 0 || strings.Contains(report.String(), "--take-from") {
			t.Errorf("want %+v\n%s", want, report)
			continue
		}
		_, err := w.Shell(t.Context(), found[0].Fix)
		must(t, err)
	}
	if report := w.check(t, dir, preflight.Choice{}, into(home), func(o *jr2.Options) { o.Adopt = true }); refusing(report) != "" {
		t.Errorf("with the fixes typed:\n%s", report)
	}
}

// TestOneCauseIsToldOnce: what pods miss is told once with all of them, also where it is asked for by another of its codes.
func TestOneCauseIsToldOnce(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home, fix = "fixed-once", "kubectl create priorityclass fixed-absent --value=1000"
	w.home(t, home, "my-instance")
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`priorityClasses: { control: "fixed-absent" }`), "workflows/ping.ts": ping})
	whole := w.check(t, dir, preflight.Choice{}, into(home))
	missing := ofCode(whole, preflight.CodePriorityClassMissing)
	if strings.Count(whole.String(), fix) != 1 || len(missing) != 1 || !strings.Contains(missing[0].Message, "Deployment "+home+"/"+names.Orchestrator) {
		t.Errorf("got\n%s", whole)
	}
	pods := w.check(t, dir, preflight.Choice{Only: []string{preflight.CodePodNeedsMissing}}, into(home))
	if found := ofCode(pods, preflight.CodePodNeedsMissing); len(found) != 1 || found[0].Fix != fix {
		t.Errorf("of the pods alone\n%s", pods)
	}
}

// TestTheFixOfALabelThatNoNodeHas names a node, and what to give it. A label that says what a node is helps nobody.
func TestTheFixOfALabelThatNoNodeHas(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	for selector, want := range map[string]string{
		`{ "example.test/pool": "agents", tier: "x" }`: "kubectl label node a example.test/pool=agents tier=x",
		`{ "kubernetes.io/arch": "s390x" }`:            "label or add a node that sandbox.nodeSelector and sandbox.tolerations take",
	} {
		dir := folder(t, map[string]string{"jr2.config.ts": configOf(`sandbox: { nodeSelector: ` + selector + ` }`), "workflows/hold.ts": hold("3Gi", "1")})
		report := w.check(t, dir, preflight.Choice{Only: []string{preflight.CodeNoSandboxNode}}, into("fixed-label"))
		if found := ofCode(report, preflight.CodeNoSandboxNode); len(found) != 1 || found[0].Fix != want {
			t.Errorf("%s: got\n%s", selector, report)
		}
	}
}

// TestAPlaceholderIsNoToken: what a fix says to type in the place of a token counts as none, and does not take one away from the cluster.
func TestAPlaceholderIsNoToken(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "fixed-token"
	w.home(t, home, "my-instance")
	dir := folder(t, map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf(`git: { credentials: [{ match: "*", token: "MY_TOKEN" }] }`)})
	told := func(value string) []preflight.Finding {
		return ofCode(w.check(t, dir, preflight.Choice{}, into(home), func(o *jr2.Options) { o.Env["MY_TOKEN"] = value }), preflight.CodeGitToken)
	}
	for value, unset := range map[string]bool{"": true, "...": true, "<your token>": true, "s3cret": false, "a...": false} {
		if found := told(value); (len(found) == 1) != unset || unset && found[0].Severity != preflight.Warn {
			t.Errorf("%q: got %+v", value, found)
		}
	}
	must(t, w.up(t, dir, into(home), func(o *jr2.Options) { o.Env["MY_TOKEN"] = "..." }).err)
	secret, err := w.client.CoreV1().Secrets(home).Get(t.Context(), names.InstanceSecret, metav1.GetOptions{})
	must(t, err)
	if _, stored := secret.Data["MY_TOKEN"]; stored {
		t.Error("the placeholder is stored")
	}
}
