package apply_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jr2.dev/jr2/apply"
)

// TestF15ALateWebhook is the first half of case F15: a webhook that can't be asked yet is asked again within a bound, and named with its Service; one that
// says no is believed at once, whatever code it chose and whatever it says.
func TestF15ALateWebhook(t *testing.T) {
	t.Parallel()
	const failed = `Internal error occurred: failed calling webhook \"w.example.io\": failed to call webhook: Post \"https://w.demo.svc:443/v?timeout=10s\": `
	for name, tt := range map[string]struct {
		code    int
		message string
		late    bool
	}{
		"refused":                           {500, failed + "dial tcp 10.0.0.1:443: connect: connection refused", true},
		"unknown authority":                 {500, failed + "tls: failed to verify certificate: x509: certificate signed by unknown authority", true},
		"no endpoints":                      {500, failed + `no endpoints available for service \"w\"`, true},
		"no such Service yet":               {500, failed + `service \"w\" not found`, true},
		"no answer":                         {500, failed + "context deadline exceeded", true},
		"a certificate that is not valid":   {500, failed + "tls: failed to verify certificate: x509: certificate is valid for x.demo.svc, not w.demo.svc", true},
		"a conversion":                      {500, `conversion webhook for ex.io/v1, Kind=A failed: Post \"https://w.demo.svc:443/c\": dial tcp: connect: connection refused`, true},
		"denied":                            {403, `admission webhook \"w.example.io\" denied the request: no`, false},
		"denied as wrong":                   {400, `admission webhook \"w.example.io\" denied the request: no`, false},
		"denied in the words of a late one": {403, `admission webhook \"w.example.io\" denied the request: connection refused by policy, x509, no endpoints available`, false},
		"denied as an error":                {500, `admission webhook \"w.example.io\" denied the request: no`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			var asked, retried atomic.Int64
			var always atomic.Bool
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/guarded") && (asked.Add(1) <= 2 || always.Load()) {
					return answer(r, tt.code, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"`+tt.message+`","code":`+strconv.Itoa(tt.code)+`}`), nil
				}
				return next.RoundTrip(r)
			})
			opts := apply.Options{Events: func(e apply.Event) {
				if e, ok := e.(apply.Retrying); ok && e.Class == apply.ClassWebhookUnready && strings.Contains(e.Err.Error(), "w.demo.svc") {
					retried.Add(1)
				}
			}}
			out, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "guarded"), opts)
			if !tt.late {
				if apply.Classify(err) != apply.ClassDenied || asked.Load() != 1 || retried.Load() != 0 {
					t.Errorf("after %d requests: %v", asked.Load(), err)
				}
				return
			}
			if err != nil || out.Count(apply.Created) != 1 || retried.Load() != 2 {
				t.Errorf("after %d retries: %v", retried.Load(), err)
			}
			always.Store(true)
			opts.Retry.Limit = 300 * time.Millisecond
			began := time.Now()
			s := mustSet(t, "app", ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: guarded, namespace: NS}\ndata: {a: b}")
			_, err = apply.Apply(t.Context(), cfg, s, opts)
			if apply.Classify(err) != apply.ClassWebhookUnready || !strings.Contains(err.Error(), "https://w.demo.svc:443") || time.Since(began) > 20*time.Second {
				t.Errorf("one that stays away, after %s: %v", time.Since(began), err)
			}
		})
	}
}
