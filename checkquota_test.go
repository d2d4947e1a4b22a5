package jr2_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2"
	"jr2.dev/jr2/preflight"
)

// A quota that has no room for the Secrets of the Instance ends a converge when its operator is there already; a check refuses before.
func TestCheckOfAQuotaOfSecrets(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "checked-counted", "my-instance")
	_, err := w.client.CoreV1().Secrets("checked-counted").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})
	must(t, err)
	quotas := w.client.CoreV1().ResourceQuotas("checked-counted")
	_, err = quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "counted"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceSecrets: quantity("1"), corev1.ResourceLimitsCPU: quantity("100")}}}, metav1.CreateOptions{})
	must(t, err)
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		quota, err := quotas.Get(ctx, "counted", metav1.GetOptions{})
		return err == nil && !quota.Status.Used.Name(corev1.ResourceSecrets, "").IsZero(), err
	}))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	report := w.check(t, dir, preflight.Choice{}, into("checked-counted"))
	for _, want := range []struct {
		code, object, fix string
		severity          preflight.Severity
	}{
		{preflight.CodeQuotaFull, "Secret checked-counted/jr2-instance", `kubectl -n checked-counted patch resourcequota counted --type merge -p '{"spec":{"hard":{"secrets":"3"}}}'`, preflight.Refuse},
		{preflight.CodeQuotaFull, "Secret checked-counted/jr2-harness-env", `{"secrets":"3"}`, preflight.Warn},
		{preflight.CodePodQuotaNever, "Deployment checked-counted/jr2-orchestrator", `"default":{"cpu":"1"}`, preflight.Refuse},
	} {
		if !slices.ContainsFunc(report.Findings, func(f preflight.Finding) bool {
			return f.Code == want.code && f.Object == want.object && f.Severity == want.severity && strings.Contains(f.Fix, want.fix)
		}) {
			t.Errorf("not told: %+v\n%s", want, report)
		}
	}
}

// A quota that has room for each object alone and not for all of them holds a converge at the last one; a check says so with the sum, and its fix is
// enough for the converge, and not too much.
func TestCheckOfAQuotaForAllTogether(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	must(t, w.up(t, dir, into("summed-whole")).err)
	used := w.counted(t, "summed-whole", corev1.ResourceList{"secrets": quantity("100"), "configmaps": quantity("100"), "pods": quantity("100"), "count/secrets": quantity("100")})
	for i, resource := range []corev1.ResourceName{"secrets", "configmaps", "pods", "count/secrets"} {
		namespace := fmt.Sprint("summed-", i)
		w.home(t, namespace, "my-instance")
		few := used[resource].DeepCopy()
		few.Sub(quantity("1"))
		before := w.counted(t, namespace, corev1.ResourceList{resource: few})
		sum := func(report *jr2.Report) (preflight.Finding, bool) {
			at := slices.IndexFunc(report.Findings, func(f preflight.Finding) bool { return f.Object == "ResourceQuota "+namespace+"/counted" })
			if at < 0 {
				return preflight.Finding{}, false
			}
			return report.Findings[at], true
		}
		f, told := sum(w.check(t, dir, preflight.Choice{}, into(namespace)))
		if !told || f.Code != preflight.CodeQuotaFull || f.Severity != preflight.Warn || !strings.Contains(f.Message, string(resource)+": ") {
			t.Errorf("%s of %s, %s used before: %+v", resource, few.String(), before.Name(resource, "").String(), f)
			continue
		}
		if _, err := w.Shell(t.Context(), f.Fix); err != nil {
			t.Error(err)
		}
		must(t, w.up(t, dir, into(namespace)).err)
		if f, told := sum(w.check(t, dir, preflight.Choice{}, into(namespace))); told {
			t.Errorf("%s, when all is there: %+v", resource, f)
		}
	}
}

// counted gives a namespace a quota, and returns what is used of it when it was counted.
func (w *world) counted(t *testing.T, namespace string, hard corev1.ResourceList) corev1.ResourceList {
	t.Helper()
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := w.client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}) // it comes to every new namespace, and counts
		return err == nil, nil
	}))
	quotas := w.client.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "counted"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	must(t, err)
	var used corev1.ResourceList
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		quota, err := quotas.Get(ctx, "counted", metav1.GetOptions{})
		used = quota.Status.Used
		return err == nil && len(used) == len(hard), err
	}))
	return used
}

// A kubeconfig that can't be used is told with what to do, and by an error that says which.
func TestCheckWithoutAUsableKubeconfig(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	absent := filepath.Join(t.TempDir(), "kubeconfig")
	for _, tt := range []struct {
		opts        jr2.Options
		object, fix string
	}{
		{jr2.Options{Dir: dir, Kubeconfig: absent}, "kubeconfig", "--kubeconfig"},
		{jr2.Options{Dir: dir, Context: "nowhere"}, "context nowhere", "--context"},
	} {
		report, err := jr2.Check(t.Context(), tt.opts, preflight.Choice{Only: []string{preflight.CodeNoContext}})
		must(t, err)
		if len(report.Findings) != 1 || report.Findings[0].Object != tt.object || !strings.Contains(report.Findings[0].Fix, tt.fix) {
			t.Errorf("got %+v, want %s", report.Findings, tt.object)
		}
	}
	var unusable *jr2.KubeconfigError
	if _, err := jr2.Converge(t.Context(), jr2.Options{Dir: dir, Kubeconfig: absent}); !errors.As(err, &unusable) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// The text tells once how all missing rights are given, by a command that takes roles in namespaces of which nobody knows whether they are there.
func TestTextOfRoles(t *testing.T) {
	t.Parallel()
	right := preflight.Finding{Severity: preflight.Refuse, Code: preflight.CodeRightMissing, Object: "get pods", Message: "may not", Fix: "printf it"}
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
	for roles, says := range map[string]string{
		"":   "fix: printf it",
		role: "for an admin: kubectl auth reconcile -f -\n" + role,
		"apiVersion: v1\nkind: Namespace\n---\n" + role: "for an admin: kubectl apply -f -\n",
	} {
		text := (&jr2.Report{Findings: []preflight.Finding{right}, Roles: roles}).String()
		if !strings.Contains(text, says) || strings.Contains(text, "printf") != (roles == "") {
			t.Errorf("with %q: %s", roles, text)
		}
	}
}

// A CA bundle that can't be read is told once, and the objects are looked at all the same.
func TestCheckWithoutTheCABundle(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`harness: { caBundle: "gone.pem" }, priorityClasses: { control: "checked-gone" }`), "workflows/ping.ts": ping})
	report := w.check(t, dir, preflight.Choice{}, into("checked-bundle"))
	if got := refusing(report); got != preflight.CodePriorityClassMissing+" "+preflight.CodeConfigField {
		t.Errorf("got %s\n%s", got, report)
	}
}
