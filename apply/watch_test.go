package apply_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/apply"
)

// A wait rides out watches that end, that the server has forgotten, and that it can't serve, and lists no more often than it must.
func TestWaitRolloutRidesOutBrokenWatches(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, workload("Deployment", plainContainer)), apply.Options{})
	mustApply(t, set(t, ns, strings.Replace(workload("Deployment", plainContainer), "web:1", "web:2", 1)), apply.Options{})
	var watches, lists atomic.Int64
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "" {
			if lists.Add(1) == 1 {
				return answer(r, 503, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,"message":"starting"}`), nil
			}
			resp, err := next.RoundTrip(r)
			if err == nil && lists.Load() < 4 { // as if the rollout had not begun
				raw, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				text := strings.ReplaceAll(string(raw), `"observedGeneration":`, `"observedGeneration":0,"was":`)
				return answer(r, resp.StatusCode, text), nil
			}
			return resp, err
		}
		switch watches.Add(1) {
		case 1:
			return answer(r, 200, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}}`+"\n"), nil
		case 2:
			return answer(r, 200, ""), nil
		case 3:
			return answer(r, 429, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"later"}`), nil
		case 4:
			return answer(r, 410, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Gone","code":410,"message":"too old resource version"}`), nil
		}
		return next.RoundTrip(r)
	})
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	status, err := apply.WaitRollout(t.Context(), client, apply.Workload{Kind: "Deployment", Namespace: ns, Name: "web"}, apply.RolloutOptions{})
	if err != nil || !status.Done {
		t.Fatalf("%+v, %v", status, err)
	}
	// One list failed, one began, and one followed each time that the server had forgotten.
	if watches.Load() != 4 || lists.Load() != 4 {
		t.Errorf("%d watches, %d lists", watches.Load(), lists.Load())
	}
}
