package jr2_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// says whether a report has a finding.
func says(report *jr2.Report, severity preflight.Severity, code, object string) bool {
	return slices.ContainsFunc(report.Findings, func(f preflight.Finding) bool {
		return f.Severity == severity && f.Code == code && strings.HasPrefix(f.Object, object)
	})
}

// Rules that came to a namespace after its workloads refuse only pods that have to be made again: a converge that changes nothing meets none of
// them, and a check warns.
func TestCheckRefusesNothingThatRuns(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "checked-late"
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	must(t, w.up(t, dir, into(home)).err)
	_, err := w.client.CoreV1().Namespaces().Patch(t.Context(), home, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = w.client.CoreV1().LimitRanges(home).Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "much"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceMemory: quantity("64Gi")}}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = w.client.CoreV1().ResourceQuotas(home).Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		corev1.ResourcePods: quantity("0"), "count/secrets": quantity("0"), "count/configmaps": quantity("0"), "services": quantity("0")}}}, metav1.CreateOptions{})
	must(t, err)
	report := w.check(t, dir, preflight.Choice{}, into(home))
	if refusing(report) != "" {
		t.Errorf("refused:\n%s", report)
	}
	if !says(report, preflight.Warn, preflight.CodePodSecurity, "DaemonSet "+home) || !says(report, preflight.Warn, preflight.CodePodRefused, "Deployment "+home) || strings.Contains(report.String(), "refusing: ") {
		t.Errorf("no warning:\n%s", report)
	}
	must(t, w.up(t, dir, into(home)).err)

	larger := folder(t, map[string]string{"jr2.config.ts": configOf(`priorityClasses: { control: "system-cluster-critical" }`), "workflows/hold.ts": hold("3Gi", "1")})
	if report := w.check(t, larger, preflight.Choice{}, into(home)); !says(report, preflight.Refuse, preflight.CodePodRefused, "Deployment "+home) {
		t.Errorf("of pods that have to be made again:\n%s", report)
	}
}

// What a converge would wait for is told: another converge of the Instance, and objects that are being deleted and don't go.
func TestCheckTellsWhatAConvergeWaitsFor(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "checked-waits"
	w.home(t, home, "my-instance")
	dir := plainFolder(t)
	services := w.client.CoreV1().Services(home)
	_, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: names.Orchestrator, Finalizers: []string{"example.test/hold"}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	must(t, err)
	must(t, services.Delete(t.Context(), names.Orchestrator, metav1.DeleteOptions{}))
	_, release, err := apply.Lock(t.Context(), w.client, home, "jr2-converge", "bo@desk", apply.LockOptions{})
	must(t, err)
	defer release()
	report := w.check(t, dir, preflight.Choice{}, into(home))
	if refusing(report) != "" || !says(report, preflight.Note, preflight.CodeLockHeld, "Lease "+home) || !strings.Contains(report.String(), "bo@desk converges this Instance since") {
		t.Errorf("of the lock:\n%s", report)
	}
	if !says(report, preflight.Warn, preflight.CodeObjectTerminating, "Service "+home) || !strings.Contains(report.String(), "example.test/hold") {
		t.Errorf("of the Service:\n%s", report)
	}
	release()
	_, err = services.Patch(t.Context(), names.Orchestrator, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	if report := w.check(t, dir, preflight.Choice{}, into(home)); strings.Contains(report.String(), preflight.CodeLockHeld) || strings.Contains(report.String(), preflight.CodeObjectTerminating) {
		t.Errorf("afterwards:\n%s", report)
	}
}

// A look that no converge makes, and that fails, refuses nobody: it is told as one that nobody could make.
func TestCheckRefusesNobodyForALookOfItsOwn(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "checked-unread", "my-instance")
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces", "/apis/node.k8s.io/v1/runtimeclasses", "/api/v1/namespaces/checked-unread/resourcequotas", "/apis/coordination.k8s.io/v1/namespaces/checked-unread/leases/jr2-converge"} {
		broken := w.served(t, func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet || r.URL.Path != path {
					return next.RoundTrip(r)
				}
				return answer(r, http.StatusInternalServerError, metav1.StatusReasonInternalError, "the store is away"), nil
			})
		})
		report := w.check(t, dir, preflight.Choice{}, into("checked-unread"), broken)
		if refusing(report) != "" || !says(report, preflight.Note, preflight.CodeNotLookedAt, "check ") || !strings.Contains(report.String(), "the store is away") {
			t.Errorf("%s:\n%s", path, report)
		}
	}
}

// answer is what a server says that refuses or fails.
func answer(r *http.Request, code int, reason metav1.StatusReason, message string) *http.Response {
	body, _ := json.Marshal(metav1.Status{ //nolint:errcheck // it is text
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(bytes.NewReader(body))}
}

// The priority classes that a converge brings are not missing, where no Instance has brought them yet.
func TestCheckMissesNoClassThatAConvergeBrings(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "checked-classless", "my-instance")
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	classless := w.served(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { // as the server is before the first converge of a cluster
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pods") {
				return next.RoundTrip(r)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			for _, class := range []string{names.PriorityControl, names.PrioritySandbox} {
				if bytes.Contains(body, []byte(`"priorityClassName":"`+class+`"`)) {
					return answer(r, http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: no PriorityClass with name `+class+` was found`), nil
				}
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return next.RoundTrip(r)
		})
	})
	if report := w.check(t, dir, preflight.Choice{}, into("checked-classless"), classless); strings.Contains(report.String(), preflight.CodePodNeedsMissing) {
		t.Errorf("missed:\n%s", report)
	}
}

// The pods of the operator are looked at where a converge would make them, and left alone where it leaves the operator as it is.
func TestCheckOfTheOperatorsPods(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	w.withoutOperator(t)
	if _, err := w.client.CoreV1().Namespaces().Get(t.Context(), names.OperatorNamespace, metav1.GetOptions{}); err != nil {
		w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.OperatorNamespace}})
	}
	quotas := w.client.CoreV1().ResourceQuotas(names.OperatorNamespace)
	none := func() {
		_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: quantity("0")}}}, metav1.CreateOptions{})
		must(t, err)
	}
	none()
	defer quotas.Delete(t.Context(), "none", metav1.DeleteOptions{}) //nolint:errcheck // the tests after this one would meet it
	dir := plainFolder(t)
	if report := w.check(t, dir, preflight.Choice{}, into("checked-operator")); !says(report, preflight.Refuse, preflight.CodePodQuotaNever, "Deployment "+names.OperatorNamespace) {
		t.Errorf("no word of the quota:\n%s", report)
	}
	must(t, quotas.Delete(t.Context(), "none", metav1.DeleteOptions{}))
	must(t, w.up(t, dir, into("checked-operator")).err)
	none()
	if report := w.check(t, dir, preflight.Choice{}, into("checked-operator")); refusing(report) != "" {
		t.Errorf("of an operator that runs:\n%s", report)
	}
}
