package jr2_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// apiDown answers the list of APIServices as a cluster does in which one is away. A real one would keep the namespaces of other tests.
func apiDown(group, version string) devcluster.Wrapper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/apis/apiregistration.k8s.io/v1/apiservices" {
				return next.RoundTrip(r)
			}
			list := `{"kind":"APIServiceList","apiVersion":"apiregistration.k8s.io/v1","items":[{"spec":{"group":"` + group + `","version":"` + version + `","service":{"namespace":"lost","name":"server"}},` +
				`"status":{"conditions":[{"type":"Available","status":"False","reason":"MissingEndpoints","message":"no addresses"}]}}]}`
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(list)), Request: r}, nil
		})
	}
}

// An API that is away is told by a check and by a converge, which only one that its objects need stops.
func TestAnAPIThatIsAway(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	other := w.served(t, apiDown("metrics.k8s.io", "v1beta1"))
	report := w.check(t, dir, preflight.Choice{Only: []string{preflight.CodeAPIDown}, Skip: []string{preflight.CodeNotLookedAt}}, into("api-down"), other)
	if len(report.Findings) != 1 || report.Findings[0].Severity != preflight.Warn || !strings.Contains(report.Findings[0].Message, "Service lost/server") {
		t.Errorf("got\n%s", report)
	}
	needed := w.served(t, apiDown("networking.k8s.io", "v1"))
	up := w.up(t, dir, into("api-down"), needed)
	var refusal *jr2.Refusal
	if !errors.As(up.err, &refusal) || refusal.Findings[0].Code != preflight.CodeAPIDown || refusal.Findings[0].Object != "APIService v1.networking.k8s.io" {
		t.Errorf("got %v", up.err)
	}
	w.isAbsent(t, "api-down")
	up = w.up(t, dir, into("api-down"), other)
	must(t, up.err)
	if !strings.Contains(up.lines, "metrics.k8s.io/v1beta1 (Service lost/server) does not answer: MissingEndpoints: no addresses") {
		t.Errorf("got\n%s", up.lines)
	}
}
