package jr2_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// check makes a report as `check` does, and fails the test when the API server's audit log has a request of it that could have stored something.
func (w *world) check(t *testing.T, dir string, choice preflight.Choice, change ...func(*jr2.Options)) *jr2.Report {
	t.Helper()
	options := jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Env: map[string]string{}, RegistryTransport: loopbackOnly{http.DefaultTransport}}
	for _, c := range change {
		c(&options)
	}
	stored := w.watched(t, &options)
	report, err := jr2.Check(t.Context(), options, choice)
	if err != nil {
		t.Fatal(err)
	}
	wroteNothing(t, "the check", stored())
	wellFormed(t, report.Findings)
	return report
}

func refusing(report *jr2.Report) string {
	var codes []string
	for _, f := range report.Findings {
		if f.Severity == preflight.Refuse {
			codes = append(codes, f.Code)
		}
		if f.Object == "" || f.Message == "" || f.Severity == preflight.Refuse && f.Fix == "" {
			codes = append(codes, "incomplete:"+f.Code)
		}
	}
	return strings.Join(codes, " ")
}

// An Instance that can live in a cluster where nobody prepared anything has nothing that refuses, before its converge and after.
func TestCheckOfACleanCluster(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	for _, when := range []string{"before", "after"} {
		report := w.check(t, dir, preflight.Choice{}, into("checked-clean"))
		if refusing(report) != "" || report.Err() != nil || report.Kubernetes == "" || report.Namespace != "checked-clean" {
			t.Errorf("%s the converge:\n%s", when, report)
		}
		if when == "before" {
			w.isAbsent(t, "checked-clean")
			must(t, w.up(t, dir, into("checked-clean")).err)
		}
	}
}

// openPart is a Workflow that leaves a repository open.
func openPart() string {
	open := strings.Replace(hold("3Gi", "1"), `"https://git.example.test/team/app.git"`, "open", 1)
	return strings.Replace(open, "{ jr2Setup, ", "{ jr2Setup, open, ", 1)
}

// What is wrong in places that do not stand on each other is told at once, and a converge ends at the first of it.
func TestCheckGoesOnWhereAConvergeEnds(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	frozen := preflight.NewCheck("freeze", func(context.Context) ([]preflight.Finding, error) {
		return []preflight.Finding{{Severity: preflight.Refuse, Code: "frozen", Object: "Namespace x", Message: "refusing: frozen", Fix: "thaw"}}, nil
	}, "frozen")
	lost := preflight.NewCheck("budget", func(context.Context) ([]preflight.Finding, error) { return nil, errors.New("no answer") }, "over-budget")
	dir := folder(t, map[string]string{
		"jr2.config.ts": configOf(`secrets: [{ name: "KEY", hosts: ["a.test"], valueFrom: { secretKeyRef: { name: "absent", key: "k" } } }], harness: { envFrom: [{ secretRef: { name: "gone" } }] }, platforms: ["linux/s390x"]`),
		// Two Sizes that are too small, and a part that nobody bound.
		"workflows/one.ts": hold("300Mi", "1"), "workflows/two.ts": hold("3Gi", "50m"),
		"workflows/three.ts": openPart(),
	})
	with := func(o *jr2.Options) { o.Checks = []preflight.Check{frozen, lost} }
	report := w.check(t, dir, preflight.Choice{}, into("checked-ill"), with)
	want := "open-part size-too-small size-too-small platform secret-missing secret-missing frozen"
	if got := refusing(report); got != want {
		t.Errorf("got %s\nwant %s\n%s", got, want, report)
	}
	if !strings.Contains(report.String(), "budget: nobody could look: no answer") {
		t.Errorf("got\n%s", report)
	}
	if err := w.up(t, dir, into("checked-ill"), with).err; err == nil {
		t.Error("the converge passes")
	}
	w.isAbsent(t, "checked-ill")

	only := w.check(t, dir, preflight.Choice{Only: []string{preflight.CodeSecretMissing}}, into("checked-ill"), with)
	if got := refusing(only); got != "platform secret-missing secret-missing" { // the first keeps others from looking
		t.Errorf("of one code: %s", got)
	}
	// What kept a check from looking is told, whichever codes are asked for.
	unread := w.check(t, t.TempDir(), preflight.Choice{Only: []string{preflight.CodeSecretMissing}}, into("checked-ill"))
	if got := refusing(unread); got != preflight.CodeInstanceMissing {
		t.Errorf("without an Instance: %s", got)
	}
}

// A caller's check that refuses stops a converge before its first write.
func TestAConvergeRunsTheCallersChecks(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	frozen := preflight.NewCheck("freeze", func(context.Context) ([]preflight.Finding, error) {
		return []preflight.Finding{{Severity: preflight.Refuse, Code: "frozen", Object: "Namespace x", Message: "refusing: frozen", Fix: "thaw"}}, nil
	}, "frozen")
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	up := w.up(t, dir, into("checked-frozen"), func(o *jr2.Options) { o.Checks = []preflight.Check{frozen} })
	var refusal *jr2.Refusal
	if !errors.As(up.err, &refusal) || refusal.Findings[0].Code != "frozen" {
		t.Errorf("got %v", up.err)
	}
	w.isAbsent(t, "checked-frozen")
}

// What leaves nothing to ask is one finding, and no list of what follows from it.
func TestCheckWithNothingToStandOn(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	plain := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	w.home(t, "checked-theirs", "another")
	for _, tt := range []struct {
		name, dir, want string
		change          func(*jr2.Options)
	}{
		{"no folder", t.TempDir(), preflight.CodeInstanceMissing, func(*jr2.Options) {}},
		{"a syntax error", folder(t, map[string]string{"jr2.config.ts": "export default {"}), preflight.CodeConfigModule, func(*jr2.Options) {}},
		{"a field", folder(t, map[string]string{"jr2.config.ts": configOf(`registry: 3`), "workflows/ping.ts": ping}), preflight.CodeConfigField, func(*jr2.Options) {}},
		{"no server", plain, preflight.CodeUnreachable, func(o *jr2.Options) { o.Config.Host = "https://127.0.0.1:1" }},
		{"a wrong token", plain, preflight.CodeUnauthorized, func(o *jr2.Options) { o.Config.BearerToken, o.Config.TLSClientConfig.CertData = "wrong", nil }},
		{"another's namespace", plain, preflight.CodeNamespaceOwner, into("checked-theirs")},
		{"no name of a namespace", plain, preflight.CodeNamespaceName, into("Big Name")},
	} {
		report := w.check(t, tt.dir, preflight.Choice{}, into("checked-nothing"), tt.change)
		if got := refusing(report); got != tt.want {
			t.Errorf("%s: got %s, want %s\n%s", tt.name, got, tt.want, report)
		}
	}
}

// What a converge would meet only when it waits for its rollouts is told by a check: pods that the namespace's level or a quota refuses, a webhook
// that nobody serves, a class that is not there.
func TestCheckOfTheWorkloads(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "checked-strict", Labels: map[string]string{
		names.LabelInstance: "my-instance", "pod-security.kubernetes.io/enforce": "restricted", "checked": "strict"}}})
	_, err := w.client.CoreV1().ResourceQuotas("checked-strict").Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: quantity("512Mi")}}}, metav1.CreateOptions{})
	must(t, err)
	never := admissionregistrationv1.Fail
	none := admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "checked-strict"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "strict.example.test", FailurePolicy: &never, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "checked-strict", Name: "nobody"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"checked": "strict"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}}}},
	}}}
	hooks := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = hooks.Create(t.Context(), hook, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, hooks.Delete(context.WithoutCancel(t.Context()), hook.Name, metav1.DeleteOptions{})) })

	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`priorityClasses: { control: "checked-absent" }`), "workflows/hold.ts": hold("3Gi", "1")})
	report := w.check(t, dir, preflight.Choice{}, into("checked-strict"))
	for _, want := range []struct{ code, says string }{
		{preflight.CodePriorityClassMissing, "kubectl create priorityclass checked-absent"},
		{preflight.CodePodSecurity, `DaemonSet checked-strict/jr2-repo-cache`},
		{preflight.CodePodQuotaNever, "small"},
		{preflight.CodeWebhookUnserved, "nobody"},
	} {
		if !slices.ContainsFunc(report.Findings, func(f preflight.Finding) bool {
			return f.Code == want.code && strings.Contains(f.Object+" "+f.Message, want.says)
		}) {
			t.Errorf("no finding %s that says %s", want.code, want.says)
		}
	}
	if t.Failed() {
		t.Logf("the report\n%s", report)
	}
}
