package jr2_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// What a converge writes beside its sets is tried too: a quota, a policy or an immutable ConfigMap that would end it refuses a check, in the server's words.
func TestCheckTriesWhatIsInNoSet(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	const never = "checked-writes"
	w.home(t, never, "my-instance")
	_, err := w.client.CoreV1().ResourceQuotas(never).Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		"count/leases.coordination.k8s.io": quantity("0"), "count/configmaps": quantity("0")}}}, metav1.CreateOptions{})
	must(t, err)
	report := w.check(t, dir, preflight.Choice{}, into(never))
	for _, object := range []string{"Lease.coordination.k8s.io " + never + "/jr2-converge", "ConfigMap " + never + "/jr2-inventory-jr2-instance", "ConfigMap " + never + "/" + names.AssemblyPointer, "ConfigMap " + never + "/" + names.AssemblyPointer + "-"} {
		if !says(report, preflight.Refuse, preflight.CodeQuotaNever, object) {
			t.Errorf("no word of %s:\n%s", object, report)
		}
	}
	if !strings.Contains(report.String(), "exceeded quota: none, requested: count/leases.coordination.k8s.io=1") || !strings.Contains(report.String(), "kubectl -n "+never+" patch resourcequota none") {
		t.Errorf("not in the server's words:\n%s", report)
	}
	if up := w.up(t, dir, into(never)); up.err == nil || !strings.Contains(up.err.Error(), "exceeded quota") {
		t.Errorf("a converge does: %v", up.err)
	}
}

// What is there is tried where a converge would change it, and costs few requests where it would not.
func TestCheckTriesWhatIsToChange(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "checked-rewrites"
	must(t, w.up(t, plainFolder(t), into(home)).err)
	other := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	var tries atomic.Int64
	counted := func(o *jr2.Options) {
		o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/configmaps") && r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "force") {
					tries.Add(1)
				}
				return next.RoundTrip(r)
			})
		})
	}
	if report := w.check(t, other, preflight.Choice{}, into(home), counted); refusing(report) != "" || strings.Contains(report.String(), preflight.CodeNotLookedAt) {
		t.Errorf("refused:\n%s", report)
	}
	if n := tries.Load(); n < 4 || n > 6 { // two for the lock, one for the inventory, two for the Assembly
		t.Errorf("%d requests", n)
	}
	configMaps := w.client.CoreV1().ConfigMaps(home)
	for _, name := range []string{names.AssemblyPointer, "jr2-inventory-jr2-instance"} {
		_, err := configMaps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"immutable":true}`), metav1.PatchOptions{})
		must(t, err)
	}
	report := w.check(t, other, preflight.Choice{}, into(home))
	for _, name := range []string{names.AssemblyPointer, "jr2-inventory-jr2-instance"} {
		if !says(report, preflight.Refuse, preflight.CodeImmutable, "ConfigMap "+home+"/"+name) {
			t.Errorf("no word of %s:\n%s", name, report)
		}
	}
	if report := w.check(t, plainFolder(t), preflight.Choice{}, into(home)); refusing(report) != "" {
		t.Errorf("of what stays as it is:\n%s", report)
	}
}

// A policy's word is told as it is, of the lock, of a deploy key and of the Assembly.
func TestCheckHearsThePolicies(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "checked-policies"
	w.home(t, home, "my-instance")
	fail := admissionv1.Fail
	rule := func(group, resource string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}}
	}
	policies := w.client.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "none-of-these"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule("coordination.k8s.io", "leases"), rule("", "configmaps"), rule("", "secrets")}},
			Validations:      []admissionv1.Validation{{Expression: "false", Message: "not by hand"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		policies.ValidatingAdmissionPolicies().Delete(t.Context(), "none-of-these", metav1.DeleteOptions{}) //nolint:errcheck // the cluster goes
	})
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "none-of-these"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "none-of-these", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: home}}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := w.client.CoreV1().ConfigMaps(home).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "try"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, nil
	}))
	report := w.check(t, keyedFolder(t), preflight.Choice{}, into(home))
	for _, object := range []string{"Lease.coordination.k8s.io " + home + "/jr2-converge", "Secret " + home + "/git-ssh", "ConfigMap " + home + "/jr2-inventory-jr2-instance", "ConfigMap " + home + "/" + names.AssemblyPointer} {
		if !says(report, preflight.Refuse, preflight.CodeRefusedByServer, object) {
			t.Errorf("no word of %s:\n%s", object, report)
		}
	}
	if !strings.Contains(report.String(), "denied request: not by hand") {
		t.Errorf("not in the server's words:\n%s", report)
	}
}
