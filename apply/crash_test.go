package apply_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// through puts a wrapper between the client and the API server.
func through(t *testing.T, wrap func(next http.RoundTripper, r *http.Request) (*http.Response, error)) *rest.Config {
	cfg := config(t)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) { return wrap(next, r) })
	})
	return cfg
}

// small is a stack without pods, so that the crash test can afford many runs; release 2 drops, adds and changes objects.
func small(release int) string {
	text := `apiVersion: v1
kind: Namespace
metadata: {name: NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: NS}
data: {release: "RELEASE"}
---
apiVersion: v1
kind: Secret
metadata: {name: words, namespace: NS}
stringData: {word: hush-RELEASE}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: only-RELEASE, namespace: NS}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:RELEASE"}]}`
	return strings.ReplaceAll(text, "RELEASE", fmt.Sprint(release))
}

// A run that is cut off before any of its requests is completed by the next, and the one after that changes nothing. Runs that are cut off
// after a request, and larger ones, are in crashlarge_test.go.
func TestApplyIsCompletedAfterACrashBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	inLanes(t, 4, func(t *testing.T, lane int) {
		// Both a first converge is cut off and an update with prune.
		crashing := 1 + lane%2
		for n := 1 + lane/2; ; n += 2 {
			ns := fmt.Sprintf("crash-%d-%d", crashing, n)
			if crashing == 2 {
				mustApply(t, set(t, ns, small(1)), apply.Options{Prune: true})
			}
			reached := crash(t, set(t, ns, small(crashing)), n)
			mustApply(t, set(t, ns, small(crashing)), apply.Options{Prune: true})
			wantEnd(t, ns, crashing)
			if third := mustApply(t, set(t, ns, small(crashing)), apply.Options{Prune: true}); third.Changed() != 0 {
				t.Errorf("%s: the third run: %+v", ns, third.Objects)
			}
			if !reached {
				break
			}
			if n > 60 {
				t.Fatal("a run of this set should not have that many requests")
			}
		}
	})
}

// crash runs Apply and cuts it off at request n, which never leaves. False when the run had fewer requests.
func crash(t *testing.T, s *apply.Set, n int) bool {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var count atomic.Int64
	dead := errors.New("the process is dead")
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if int(count.Add(1)) < n {
			return next.RoundTrip(r)
		}
		kill()
		return nil, dead
	})
	_, err := apply.Apply(ctx, cfg, s, apply.Options{Prune: true, Concurrency: 1})
	reached := int(count.Load()) >= n
	if reached && err == nil {
		t.Fatalf("request %d was lost and nobody noticed", n)
	}
	if !reached && err != nil {
		t.Fatal(err)
	}
	return reached
}

func wantEnd(t *testing.T, ns string, release int) {
	t.Helper()
	core := typed(t).CoreV1()
	secret, err := core.Secrets(ns).Get(t.Context(), "words", metav1.GetOptions{})
	if err != nil || string(secret.Data["word"]) != fmt.Sprintf("hush-%d", release) {
		t.Errorf("%s: Secret: %v", ns, err)
	}
	maps, err := core.ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var only []string
	for _, m := range maps.Items {
		if strings.HasPrefix(m.Name, "only-") {
			only = append(only, m.Name)
		}
	}
	if len(only) != 1 || only[0] != fmt.Sprintf("only-%d", release) {
		t.Errorf("%s: %v", ns, only)
	}
}

// Faults in the middle of a run are ridden out, and never told as a change or as none that was not.
func TestApplyRidesOutFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault func(next http.RoundTripper, r *http.Request) (*http.Response, error)
	}{
		{"429", func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
			return answer(r, 429, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"later"}`), nil
		}},
		{"503", func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
			return answer(r, 503, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,"message":"apiserver is shutting down"}`), nil
		}},
		{"etcd", func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
			return answer(r, 500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcdserver: leader changed"}`), nil
		}},
		{"reset", func(http.RoundTripper, *http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }},
		{"answer lost", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			return nil, io.ErrUnexpectedEOF
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			var count atomic.Int64
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if count.Add(1)%3 == 0 {
					return tt.fault(next, r)
				}
				return next.RoundTrip(r)
			})
			s := set(t, ns, small(1))
			retries := 0
			out, err := apply.Apply(t.Context(), cfg, s, apply.Options{Prune: true, Events: func(e apply.Event) {
				if _, ok := e.(apply.Retrying); ok {
					retries++
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			// The namespace was there before.
			if out.Count(apply.Created) != len(s.Objects)-1 || out.Count(apply.Unchanged) != 1 || retries == 0 {
				t.Errorf("%d retries, %+v", retries, out.Objects)
			}
			if again := mustApply(t, s, apply.Options{Prune: true}); again.Changed() != 0 {
				t.Errorf("the second run: %+v", again.Objects)
			}
		})
	}
}

// A failure that does not end is an error that names the object, within the bound.
func TestApplyGivesUpOnAFaultThatStays(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/services/web") {
			return answer(r, 500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"Internal error occurred: failed calling webhook \"w.example.io\": failed to call webhook: Post \"https://w.demo.svc:443/v\": no endpoints available for service \"w\""}`), nil
		}
		return next.RoundTrip(r)
	})
	out, err := apply.Apply(t.Context(), cfg, set(t, ns, small(1)), apply.Options{Retry: apply.Retry{Limit: 300 * time.Millisecond}})
	var object *apply.ObjectError
	if !errors.As(err, &object) || object.Ref.Name != "web" || object.Class != apply.ClassWebhookUnready || !strings.Contains(err.Error(), `service "w"`) {
		t.Fatalf("got %v", err)
	}
	if out.Did(apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: ns, Name: "conf"}) != apply.Created || out.Count(apply.Created) != 3 {
		t.Errorf("what was done before: %+v", out.Objects)
	}
}

func answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}
