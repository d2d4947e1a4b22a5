package provision_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

// through is a way to the cluster on which answer may do something else than pass a request on.
func (s *site) through(answer func(next http.RoundTripper, r *http.Request) (*http.Response, error)) *rest.Config {
	cfg := rest.CopyConfig(s.cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) { return answer(next, r) })
	})
	return cfg
}

func response(r *http.Request, code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

func isSandbox(r *http.Request, method string) bool {
	return r.Method == method && strings.Contains(r.URL.Path, "/sandboxes")
}

// TestTheServerRestarts in the middle of a wait, which goes on as if nothing had been.
func TestTheServerRestarts(t *testing.T) {
	t.Parallel()
	options := devcluster.Options{Dir: t.TempDir(), Nodes: []devcluster.Node{{Name: "roomy", Allocatable: roomy()}}}
	cluster, err := devcluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	cfg := cluster.Config()
	if err := install(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s := siteOn(t, cfg)
	q := s.quota("q", list(corev1.ResourceLimitsMemory, "512Mi"))
	operate := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- controller.Run(ctx, cfg, controller.Options{}) }()
		return func() { cancel(); <-done }
	}
	going := s.start(s.request(), provision.Options{LeaseEvery: time.Second, UnheededAfter: 200 * time.Millisecond})
	going.tells("unheeded") // there is no operator yet
	stop := operate()
	going.tells("waits on quota")
	stop()
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := devcluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close() //nolint:errcheck // a test cluster
	defer operate()()
	s.raise(q, list(corev1.ResourceLimitsMemory, "2Gi"))
	if _, err := going.end(); err != nil || strings.Count(going.told(), "waits on") != 1 || strings.Count(going.told(), "unheeded") != 1 || !strings.HasSuffix(going.told(), "ready roomy") {
		t.Errorf("%v, told\n%s", err, going.told())
	}
	going.box.Release()
}

// TestAWatchThatEnds is resumed where it broke, and begins again with a list when the server has forgotten that point.
func TestAWatchThatEnds(t *testing.T) {
	s := newSite(t)
	var mutex sync.Mutex
	watches, lists := 0, 0
	expired := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old resource version","code":410}`
	cfg := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if !isSandbox(r, http.MethodGet) || r.URL.Query().Get("fieldSelector") == "" {
			return next.RoundTrip(r)
		}
		mutex.Lock()
		defer mutex.Unlock()
		if r.URL.Query().Get("watch") == "" {
			lists++
			return next.RoundTrip(r)
		}
		watches++
		switch watches {
		case 1: // it breaks, and is resumed
			return response(r, http.StatusOK, ""), nil
		case 2:
			return nil, io.ErrUnexpectedEOF
		case 3: // forgotten, as most servers say it
			return response(r, http.StatusOK, `{"type":"ERROR","object":`+expired+"}\n"), nil
		case 4: // and as an answer of its own
			return response(r, http.StatusGone, expired), nil
		case 5: // the server is crowded
			return response(r, http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`), nil
		}
		return next.RoundTrip(r)
	})
	going := s.startAs(cfg, s.request(), provision.Options{})
	if _, err := going.end(); err != nil || going.told() != "placing\nprovisioning roomy\nready roomy" {
		t.Errorf("%v, told\n%s", err, going.told())
	}
	mutex.Lock()
	defer mutex.Unlock()
	if lists > 3 {
		t.Errorf("%d lists for %d watches", lists, watches)
	}
}

// TestLostAnswers: what was written is not written twice, and a caller who gives up in between leaves nothing.
func TestLostAnswers(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		s := newSite(t)
		lost := map[string]bool{}
		var mutex sync.Mutex
		cfg := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			mutex.Lock()
			defer mutex.Unlock()
			if key := r.Method + r.URL.Path; err == nil && r.Method != http.MethodGet && !lost[key] {
				lost[key] = true
				response.Body.Close() //nolint:errcheck // nobody reads it
				return nil, io.ErrUnexpectedEOF
			}
			return response, err
		})
		going := s.startAs(cfg, s.request(), provision.Options{})
		box, err := going.end()
		if err != nil || box.Adopted || len(lost) != 3 { // the Secret, the Sandbox, the Secret's owner
			t.Errorf("%+v, %v, lost %v", box, err, lost)
		}
		s.are(1)
		if err := box.Teardown(t.Context()); err != nil {
			t.Error(err)
		}
		s.are(0)
	})
	t.Run("and given up", func(t *testing.T) {
		s := newSite(t)
		var going *telling
		began := make(chan struct{})
		cfg := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if isSandbox(r, http.MethodPost) && err == nil {
				<-began
				going.cancel(nil)
				response.Body.Close() //nolint:errcheck // nobody reads it
				return nil, io.ErrUnexpectedEOF
			}
			return response, err
		})
		going = s.startAs(cfg, s.request(pooled("nowhere")), provision.Options{})
		close(began)
		if box, err := going.end(); !box.Removed || err == nil {
			t.Errorf("%+v, %v", box, err)
		}
		s.are(0)
	})
}

// TestTheLeaseIsRenewed while the Sandbox waits and afterwards, through refusals, and not that of another Sandbox of the name.
func TestTheLeaseIsRenewed(t *testing.T) {
	s := newSite(t)
	var mutex sync.Mutex
	refusals := 2
	cfg := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		mutex.Lock()
		refused := isSandbox(r, http.MethodPatch) && refusals > 0
		if refused {
			refusals--
		}
		mutex.Unlock()
		if refused {
			return response(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not now","code":403}`), nil
		}
		return next.RoundTrip(r)
	})
	request := s.request(pooled("nowhere"))
	going := s.startAs(cfg, request, provision.Options{LeaseEvery: 300 * time.Millisecond})
	going.tells("unrenewed: not now\nunrenewed: not now")
	var box v1alpha1.Sandbox
	kept := func() string { s.get(request.Sandbox.Name, &box); return box.Annotations[v1alpha1.AnnotationKeepalive] }
	first := kept()
	s.until("the lease is renewed", func() bool { return kept() > first })
	going.cancel(nil)
	going.end() //nolint:errcheck // it was told to

	// The same for one that somebody else brought.
	s.create(request.Sandbox.DeepCopy())
	s.get(request.Sandbox.Name, &box)
	another := box.DeepCopy()
	another.UID = "another"
	var lost *provision.LostError
	if err := provision.Lease(t.Context(), s.cfg, another, time.Minute, func(err error) { t.Errorf("unrenewed: %v", err) }); !errors.As(err, &lost) || lost.Cause != provision.ErrDeleted {
		t.Errorf("another one's: %v", err)
	}
	if kept() != "" {
		t.Errorf("kept %s by the lease of another", kept())
	}
	ended := make(chan error, 1)
	go func() {
		ended <- provision.Lease(t.Context(), s.cfg, &box, 200*time.Millisecond, func(err error) { t.Error(err) })
	}()
	s.until("the lease is renewed", func() bool {
		var now v1alpha1.Sandbox
		s.get(box.Name, &now)
		return now.Annotations[v1alpha1.AnnotationKeepalive] != ""
	})
	remove(s, nil, box.Name)
	if err := <-ended; !errors.Is(err, provision.ErrDeleted) || !strings.Contains(fmt.Sprint(err), box.Name) {
		t.Errorf("ended with %v", err)
	}
}
