package jr2_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

const manyConfig = `kitRegistry: "mirror",
  priorityClasses: { control: "many-control", sandbox: "many-sandbox" },
  harness: {
    envFrom: [{ secretRef: { name: "gone-1" } }, { secretRef: { name: "gone-2" } }],
    env: [{ name: "A", valueFrom: { secretKeyRef: { name: "gone-3", key: "k" } } }, { name: "B", valueFrom: { secretKeyRef: { name: "half", key: "k" } } }],
  },
  git: { credentials: [{ match: "git.example.test/team/app", token: "MANY_TOKEN" }, { match: "git.example.test/keyed/a", sshKey: "gone-key" }] }`

// TestCheckOfEverythingAtOnce: an Instance and a cluster that are wrong in more than 25 ways are told so at once, each with its object and its fix; and
// when each fix is done, nothing is left but what nobody can see from here.
func TestCheckOfEverythingAtOnce(t *testing.T) {
	w := theWorld(t, node("a"))
	w.manyFaults(t)
	with := func(workflow, url string) string {
		return strings.Replace(workflow, "https://git.example.test/team/app.git", url, 1)
	}
	bundled := strings.Replace(hold("3Gi", "1"), "resources:", `image: "go", resources:`, 1)
	const keyed, bare = "git@git.example.test:keyed/a.git", "git@git.example.test:bare/b.git"
	dir := folder(t, map[string]string{
		"jr2.config.ts": configOf(manyConfig), "workflows/one.ts": hold("300Mi", "1"), "workflows/two.ts": hold("3Gi", "50m"),
		"workflows/three.ts": openPart(), "workflows/four.ts": openPart(), "workflows/five.ts": hold("512Gi", "1"),
		"workflows/six.ts": with(hold("3Gi", "1"), keyed), "workflows/seven.ts": with(hold("3Gi", "1"), bare), "workflows/eight.ts": bundled,
	})
	frozen := preflight.NewCheck("freeze", func(context.Context) ([]preflight.Finding, error) {
		return []preflight.Finding{{Severity: preflight.Refuse, Code: "frozen", Object: "Namespace many", Message: "refusing: many is frozen", Fix: "have it thawed"}}, nil
	}, "frozen")
	off := false
	wrong := faulty(t, w.check(t, dir, preflight.Choice{}, into("many"), func(o *jr2.Options) {
		o.Checks = []preflight.Check{frozen}
		o.Bundle = images.Bundle{Images: map[string]images.Bundled{"go": {Enabled: &off}}}
	}))
	if len(wrong) < 25 {
		t.Errorf("%d findings", len(wrong))
	}

	mended := strings.NewReplacer(`kitRegistry: "mirror"`, `kitRegistry: "registry.example.com/mirror"`, `sshKey: "gone-key" }`, `sshKey: "gone-key" }, { match: "git.example.test/bare/b", sshKey: "gone-key" }`)
	fixed := folder(t, map[string]string{
		"jr2.config.ts": configOf(mended.Replace(manyConfig)), "workflows/one.ts": hold("3Gi", "1"), "workflows/two.ts": hold("3Gi", "1"),
		"workflows/three.ts": hold("3Gi", "1"), "workflows/four.ts": hold("3Gi", "1"), "workflows/five.ts": hold("5Gi", "1"),
		"workflows/six.ts": with(hold("3Gi", "1"), keyed), "workflows/seven.ts": with(hold("3Gi", "1"), bare),
	})
	w.classes(t, "many-control", "many-sandbox")
	w.mendMany(t)
	left := w.check(t, fixed, preflight.Choice{}, into("many"), func(o *jr2.Options) {
		o.TakeFrom, o.Env = []string{"jr2.test"}, map[string]string{"MANY_TOKEN": "hush"}
	})
	if wrong := faulty(t, left); len(wrong) > 0 {
		t.Errorf("when all is mended:\n%s", left)
	}
}

// faulty are the findings that are no notes; each must name an object and a fix.
func faulty(t *testing.T, report *jr2.Report) []preflight.Finding {
	t.Helper()
	var wrong []preflight.Finding
	for _, f := range report.Findings {
		if f.Severity == preflight.Note {
			continue
		}
		wrong = append(wrong, f)
		if f.Object == "" || f.Fix == "" {
			t.Errorf("without object or fix: %+v", f)
		}
	}
	return wrong
}

// mendMany does in the cluster what the fixes say.
func (w *world) mendMany(t *testing.T) {
	t.Helper()
	ctx, core := t.Context(), w.client.CoreV1()
	for _, name := range []string{"gone-1", "gone-2", "gone-3", "gone-key"} {
		_, err := core.Secrets("many").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"KEY": "x", "k": "x", "identity": "x"}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err := core.Secrets("many").Patch(ctx, "half", types.MergePatchType, []byte(`{"stringData":{"k":"..."}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = core.Namespaces().Patch(ctx, "many", types.MergePatchType, []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = core.ResourceQuotas("many").Patch(ctx, "small", types.MergePatchType, []byte(`{"spec":{"hard":{"limits.memory":"64Gi"}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		quota, err := core.ResourceQuotas("many").Get(ctx, "small", metav1.GetOptions{})
		limit := quota.Status.Hard[corev1.ResourceLimitsMemory]
		return err == nil && limit.Cmp(quantity("64Gi")) == 0, err
	}))
	must(t, core.Services("many").Delete(ctx, names.Orchestrator, metav1.DeleteOptions{}))
	must(t, core.PersistentVolumeClaims("many").Delete(ctx, "jr2-state", metav1.DeleteOptions{}))
	must(t, w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "many", metav1.DeleteOptions{}))
}

// manyFaults makes a namespace in which much is wrong.
func (w *world) manyFaults(t *testing.T) {
	t.Helper()
	ctx, core := t.Context(), w.client.CoreV1()
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many", Labels: map[string]string{
		names.LabelInstance: "my-instance", names.LabelManagedBy: "helm", "pod-security.kubernetes.io/enforce": "restricted", "many": "faults"}}})
	_, err := core.ResourceQuotas("many").Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: quantity("512Mi")}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.Secrets("many").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "half"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.Services("many").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: names.Orchestrator, Annotations: map[string]string{"jr2.dev/set": "elsewhere/other"}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.PersistentVolumeClaims("many").Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "jr2-state"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("7Gi")}}}}, metav1.CreateOptions{})
	must(t, err)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "many.example.test", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "many", Name: "nobody"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"many": "faults"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{"networking.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"networkpolicies"}}}},
	}}}
	hooks := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = hooks.Create(ctx, hook, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { hooks.Delete(context.WithoutCancel(t.Context()), hook.Name, metav1.DeleteOptions{}) }) //nolint:errcheck // a fix may have
}
