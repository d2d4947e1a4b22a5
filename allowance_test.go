package jr2_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/preflight"
)

// TestTheNamespaceSaysWhatSandboxesMayAskFor: the configuration's placement stands on the Namespace for the operator, follows the configuration, goes
// with the Instance where the Namespace stays, and keeps nobody from converging who may not write it.
func TestTheNamespaceSaysWhatSandboxesMayAskFor(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	client, err := kubernetes.NewForConfig(w.Config())
	must(t, err)
	said := func() *v1alpha1.Allowance {
		t.Helper()
		namespace, err := client.CoreV1().Namespaces().Get(t.Context(), "allowance", metav1.GetOptions{})
		must(t, err)
		allowance, err := v1alpha1.ParseAllowance(namespace.Annotations)
		must(t, err)
		return allowance
	}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "allowance"}}, metav1.CreateOptions{})
	must(t, err)
	plain := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, plain, into("allowance")).err)
	if got := said(); got == nil || got.PriorityClassName != "jr2-sandbox" || got.Tolerations != nil {
		t.Errorf("the Namespace says %+v, want the class alone", got)
	}
	if told := w.up(t, plain, into("allowance")); told.err != nil || told.result.Changed != 0 {
		t.Errorf("a second run: %d changed, %v", told.result.Changed, told.err)
	}
	tolerating := folder(t, map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": `import { defineConfig } from "@jr2/orchestrator";
export default defineConfig({ name: "my-instance", sandbox: { tolerations: [{ key: "gpu", operator: "Exists" }] } });
`})
	refused := w.up(t, tolerating, into("allowance"), w.served(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch || r.URL.Path != "/api/v1/namespaces/allowance" {
				return next.RoundTrip(r)
			}
			const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
	}))
	if refused.err != nil || !slices.ContainsFunc(refused.result.Findings, func(f preflight.Finding) bool {
		return f.Severity == preflight.Warn && f.Object == "Namespace allowance" && f.Fix != ""
	}) {
		t.Errorf("who may not write it: %v, %+v", refused.err, refused.result.Findings)
	}
	must(t, w.up(t, tolerating, into("allowance")).err)
	if got := said(); got == nil || len(got.Tolerations) != 1 || got.Tolerations[0].Key != "gpu" {
		t.Errorf("the Namespace says %+v, want the toleration of the configuration", got)
	}
	w.down(t, "allowance")
	if got := said(); got != nil {
		t.Errorf("after down the Namespace says %+v", got)
	}
}
