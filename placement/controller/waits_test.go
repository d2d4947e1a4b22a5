package controller_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// stopped is a clock that stands still: nothing that waits for a time comes to pass.
func stopped() *clocktesting.FakePassiveClock { return clocktesting.NewFakePassiveClock(time.Now()) }

// through starts a proxy before the shared API server.
func (s *site) through(wrappers ...devcluster.Wrapper) *rest.Config {
	s.Helper()
	proxy, err := devcluster.StartProxy(s.Context(), shared.Config(), wrappers...)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			s.Error(err)
		}
	})
	cfg := proxy.Config()
	cfg.ContentType = "application/json" // wrappers read it
	return cfg
}

// counter counts the requests of a method, "" for any, whose path ends so.
func counter(method, suffix string, into *atomic.Int64) devcluster.Wrapper {
	return func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if (method == "" || r.Method == method) && strings.HasSuffix(r.URL.Path, suffix) {
				into.Add(1)
			}
			return next.RoundTrip(r)
		})
	}
}

// limit makes or changes a ResourceQuota, and waits until it holds.
func (s *site) limit(name, what, amount string) {
	s.Helper()
	hard := corev1.ResourceList{corev1.ResourceName(what): resource.MustParse(amount)}
	quota := &corev1.ResourceQuota{}
	if s.get(name, quota) {
		before := quota.DeepCopy()
		quota.Spec.Hard = hard
		if err := s.Patch(s.Context(), quota, client.MergeFrom(before)); err != nil {
			s.Fatal(err)
		}
		return
	}
	s.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}})
	s.until("the quota is counted", func() bool { return s.get(name, quota) && len(quota.Status.Hard) > 0 })
}

// TestQuotaStory is the document's: a quota of 512Mi refuses a Sandbox of 1Gi in its own words; when it is raised the Sandbox is placed. The
// clock stands still, so that only the watch can say so.
func TestQuotaStory(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.limit("team-quota", "limits.memory", "512Mi")
	var creates atomic.Int64
	s.start(s.through(counter(http.MethodPost, "/pods", &creates)), controller.Options{Clock: stopped()})
	s.create(sandbox("ws-5e817334-x-0-61ru0u"))
	box := s.reason("ws-5e817334-x-0-61ru0u", v1alpha1.ConditionScheduled, v1alpha1.ReasonQuotaExceeded)
	const words = `pods "ws-5e817334-x-0-61ru0u" is forbidden: exceeded quota: team-quota, requested: limits.memory=1Gi, used: limits.memory=0, limited: limits.memory=512Mi`
	for _, kind := range []string{v1alpha1.ConditionScheduled, v1alpha1.ConditionReady} {
		if c := condition(box, kind); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonQuotaExceeded || c.Message != words {
			t.Errorf("%+v", c)
		}
	}
	if box.Status.Phase != v1alpha1.SandboxPending || box.Status.PodUID != "" || box.Status.Endpoint == "" {
		t.Errorf("%+v", box.Status)
	}
	s.limit("team-quota", "limits.memory", "600Mi") // still too little: nothing is tried
	s.limit("team-quota", "limits.memory", "1Gi")
	s.phase(box.Name, v1alpha1.SandboxReady)
	// The refused one, the one that was let in, and perhaps one that came before the API server itself had heard of the change.
	if n := creates.Load(); n > 3 {
		t.Errorf("%d creates", n)
	}
}

// TestF30Quotas: what counts objects refuses as what counts sizes does, and each lets go when it is raised, deleted, or used less.
func TestF30Quotas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		resource, amount, raised string // raised "" is deleted
		words                    string
	}{
		"pods":     {"pods", "0", "1", `pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0`},
		"services": {"services", "0", "1", `services "a" is forbidden: exceeded quota: q, requested: services=1, used: services=0, limited: services=0`},
		"counted":  {"count/pods", "0", "", `pods "a" is forbidden: exceeded quota: q, requested: count/pods=1, used: count/pods=0, limited: count/pods=0`},
		"cpu":      {"requests.cpu", "10m", "", `pods "a" is forbidden: exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=0, limited: requests.cpu=10m`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			s.limit("q", test.resource, test.amount)
			opts := controller.Options{Clock: stopped()}
			if test.raised == "" { // one event alone tells of it, and the API server may hear of it later: then the clock tries again
				opts.Clock = nil
			}
			s.start(nil, opts)
			s.create(sandbox("a"))
			box := s.reason("a", v1alpha1.ConditionScheduled, v1alpha1.ReasonQuotaExceeded)
			if c := condition(box, v1alpha1.ConditionReady); c.Message != test.words {
				t.Errorf("%+v", c)
			}
			if test.raised != "" {
				s.limit("q", test.resource, test.raised)
			} else if err := s.Delete(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "q"}}); err != nil {
				t.Fatal(err)
			}
			s.phase("a", v1alpha1.SandboxReady)
		})
	}
}

// TestQuotaIsFreed: what another one leaves is taken by the oldest that waits.
func TestQuotaIsFreed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.limit("q", "pods", "1")
	s.start(nil, controller.Options{Clock: stopped()})
	s.create(sandbox("first"))
	s.phase("first", v1alpha1.SandboxReady)
	s.create(sandbox("second"))
	s.reason("second", v1alpha1.ConditionScheduled, v1alpha1.ReasonQuotaExceeded)
	s.deletePod("first")
	s.phase("first", v1alpha1.SandboxLost)
	s.phase("second", v1alpha1.SandboxReady)
}

func (s *site) deletePod(name string) {
	s.Helper()
	if err := s.Delete(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}); err != nil {
		s.Fatal(err)
	}
}

// TestWithoutTheWatch: a controller that may not watch ResourceQuotas finds the room by the clock.
func TestWithoutTheWatch(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.limit("q", "pods", "0")
	refuse := func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if asks(t, r, "resourcequotas") {
				return answer(r, http.StatusCreated, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{},"status":{"allowed":false}}`), nil
			}
			if strings.Contains(r.URL.Path, "/resourcequotas") {
				t.Errorf("%s %s", r.Method, r.URL.Path)
			}
			return next.RoundTrip(r)
		})
	}
	s.start(s.through(refuse), controller.Options{})
	s.create(sandbox("a"))
	s.reason("a", v1alpha1.ConditionScheduled, v1alpha1.ReasonQuotaExceeded)
	s.limit("q", "pods", "1")
	s.phase("a", v1alpha1.SandboxReady)
}

// asks says whether a request asks for a right to a resource.
func asks(t *testing.T, r *http.Request, resource string) bool {
	t.Helper()
	if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
		return false
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return bytes.Contains(text, []byte(resource))
}

// TestWaitsForANode: the scheduler's own words, until there is a node.
func TestWaitsForANode(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(nil, controller.Options{})
	s.create(sandbox("a", func(b *v1alpha1.Sandbox) { b.Spec.NodeSelector = map[string]string{"wanted-by": s.namespace} }))
	box := s.reason("a", v1alpha1.ConditionScheduled, v1alpha1.ReasonUnschedulable)
	if c := condition(box, v1alpha1.ConditionReady); c.Reason != v1alpha1.ReasonUnschedulable || !strings.Contains(c.Message, "nodes are available") {
		t.Errorf("%+v", c)
	}
	if box.Status.PodUID == "" || box.Status.Phase != v1alpha1.SandboxPending {
		t.Errorf("%+v", box.Status)
	}
	if err := shared.AddNode(t.Context(), devcluster.Node{Name: "waited-for", Labels: map[string]string{"wanted-by": s.namespace}}); err != nil {
		t.Fatal(err)
	}
	if box := s.phase("a", v1alpha1.SandboxReady); box.Status.Node != "waited-for" {
		t.Errorf("it is on %s", box.Status.Node)
	}
}

// TestF29AGate: a pod that a queue holds is a wait: it is neither Lost nor made again, and goes on when the gate does.
func TestF29AGate(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	gate := func(next http.RoundTripper) http.RoundTripper { // as a queue's webhook does
		return editPosts("/pods", next, func(pod map[string]any) {
			pod["spec"].(map[string]any)["schedulingGates"] = []any{map[string]any{"name": "example.com/admission"}}
		})
	}
	s.start(s.through(gate), controller.Options{})
	s.create(sandbox("a"))
	box := s.reason("a", v1alpha1.ConditionScheduled, "SchedulingGated")
	if c := condition(box, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || c.Reason != "SchedulingGated" || !strings.HasSuffix(c.Message, "gate example.com/admission") {
		t.Errorf("%+v", c)
	}
	pod := new(corev1.Pod)
	s.get("a", pod)
	pod.Spec.SchedulingGates = nil
	if err := s.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if box := s.phase("a", v1alpha1.SandboxReady); box.Status.PodUID != pod.UID {
		t.Error("another pod was made")
	}
}

// TestContainersThatWait: the kubelet's words about containers, and how the primary one ended before.
func TestContainersThatWait(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(nil, controller.Options{})
	for trouble, want := range map[devcluster.Trouble]string{devcluster.ImagePullBackOff: "ImagePullBackOff", devcluster.OOMKilled: "CrashLoopBackOff", devcluster.ContainerCreating: "ContainerCreating"} {
		name := strings.ToLower(string(trouble))
		s.create(sandbox(name, func(b *v1alpha1.Sandbox) { b.Spec.Image = devcluster.TroubleImage(trouble) }))
		box := s.box(name, "says what its container waits for", func(b *v1alpha1.Sandbox) bool { return len(b.Status.Waiting) > 0 })
		if w := box.Status.Waiting[0]; len(box.Status.Waiting) != 1 || w.Container != "harness" || w.Reason != want {
			t.Errorf("%s: %+v", trouble, box.Status.Waiting)
		}
		if c := condition(box, v1alpha1.ConditionReady); c.Reason != v1alpha1.ReasonPodNotReady || box.Status.Phase != v1alpha1.SandboxPending {
			t.Errorf("%s: %+v", trouble, c)
		}
		if end := box.Status.Harness; trouble == devcluster.OOMKilled && (end == nil || end.RestartCount != 3 || end.LastTerminated == nil || end.LastTerminated.Reason != "OOMKilled" || end.LastTerminated.ExitCode != 137) {
			t.Errorf("%+v", end)
		}
	}
}
