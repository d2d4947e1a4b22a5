package controller_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestStaleCache: a controller that has not heard that the one pod of a Sandbox came and went makes no second one: it asks before it creates.
func TestStaleCache(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.limit("q", "pods", "0")
	var creates, looks atomic.Int64
	frozen := &freeze{}
	clock := stopped()
	s.start(s.through(counter(http.MethodPost, "/pods", &creates), counter(http.MethodGet, "/sandboxes/a", &looks), frozen.watches), controller.Options{Clock: clock})
	s.create(sandbox("a"))
	s.reason("a", v1alpha1.ConditionScheduled, v1alpha1.ReasonQuotaExceeded)
	frozen.begin()
	tried := creates.Load()

	stop := s.start(nil, controller.Options{})
	s.limit("q", "pods", "1")
	first := s.phase("a", v1alpha1.SandboxReady)
	s.deletePodIfAny("a")
	s.phase("a", v1alpha1.SandboxLost)
	stop()

	before := looks.Load()
	clock.SetTime(clock.Now().Add(time.Hour)) // the refused create is due
	// It asks, hears that the Sandbox has moved on, and asks for what it is now.
	s.until("the controller asks", func() bool { return looks.Load() >= before+2 || creates.Load() > tried })
	if creates.Load() != tried || s.get("a", &corev1.Pod{}) {
		t.Errorf("%d creates after %d", creates.Load(), tried)
	}
	if box := s.phase("a", v1alpha1.SandboxLost); box.Status.PodUID != first.Status.PodUID {
		t.Errorf("%+v", box.Status)
	}
}

// A freeze holds what watches say from its begin on.
type freeze struct {
	mu     sync.Mutex
	frozen chan struct{} // closed never
}

func (f *freeze) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = make(chan struct{})
}

func (f *freeze) watches(next http.RoundTripper) http.RoundTripper {
	return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") != "" {
			response.Body = &heldBody{ReadCloser: response.Body, freeze: f, done: r.Context().Done()}
		}
		return response, err
	})
}

type heldBody struct {
	io.ReadCloser
	freeze *freeze
	done   <-chan struct{}
}

// Read gives what came before the freeze. What was asked for before and comes after is held back.
func (h *heldBody) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.freeze.mu.Lock()
	frozen := h.freeze.frozen
	h.freeze.mu.Unlock()
	if frozen != nil {
		<-h.done
	}
	return n, err
}

// TestLateCreate: a create that one controller sent off long ago arrives after the pod of the other came, was written down and went. The
// late pod is ended, and the Sandbox stays Lost with its first.
func TestLateCreate(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	sent, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hold := func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") {
				once.Do(func() { close(sent) })
				<-release
			}
			return next.RoundTrip(r)
		})
	}
	s.start(s.through(hold), controller.Options{})
	s.create(sandbox("a"))
	<-sent
	uids := s.uids("a")
	s.start(nil, controller.Options{})
	first := s.phase("a", v1alpha1.SandboxReady)
	s.deletePodIfAny("a")
	s.phase("a", v1alpha1.SandboxLost)
	close(release)
	s.until("the late pod comes", func() bool { return len(uids()) == 2 })
	s.until("the late pod is ended", func() bool { return !s.get("a", &corev1.Pod{}) })
	if box := s.phase("a", v1alpha1.SandboxLost); box.Status.PodUID != first.Status.PodUID {
		t.Errorf("%+v", box.Status)
	}
}
