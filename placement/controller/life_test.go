package controller_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestLost: each end of a pod is the end of its Sandbox. No second pod is made, whatever happens to the Sandbox afterwards.
func TestLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(nil, controller.Options{})
	for name, test := range map[string]struct {
		end    func(pod *corev1.Pod)
		reason string
	}{
		"deleted": {func(pod *corev1.Pod) { s.deletePod(pod.Name) }, v1alpha1.ReasonPodDeleted},
		"evicted": {func(pod *corev1.Pod) {
			s.report(pod, func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
			})
		}, "Evicted"},
		"failed":    {func(pod *corev1.Pod) { s.report(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }) }, v1alpha1.ReasonPodFailed},
		"succeeded": {func(pod *corev1.Pod) { s.report(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }) }, v1alpha1.ReasonPodSucceeded},
	} {
		s.create(sandbox(name))
		ready := s.phase(name, v1alpha1.SandboxReady)
		pod := new(corev1.Pod)
		s.get(name, pod)
		test.end(pod)
		box := s.phase(name, v1alpha1.SandboxLost)
		if c := condition(box, v1alpha1.ConditionLost); c.Status != metav1.ConditionTrue || c.Reason != test.reason || c.Message == "" {
			t.Errorf("%s: %+v", name, c)
		}
		if c := condition(box, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || c.Reason != test.reason {
			t.Errorf("%s: %+v", name, c)
		}
		if box.Status.PodUID != ready.Status.PodUID || box.Status.Node != "roomy" || box.Status.Harness == nil {
			t.Errorf("%s: what was known is gone: %+v", name, box.Status)
		}
		s.deletePodIfAny(name)
		box.Annotations = map[string]string{v1alpha1.AnnotationKeepalive: time.Now().UTC().Format(time.RFC3339)}
		if err := s.Update(t.Context(), box); err != nil {
			t.Fatal(err)
		}
	}
	// What comes later is worked on after all of these.
	s.create(sandbox("later"))
	s.phase("later", v1alpha1.SandboxReady)
	for _, name := range []string{"deleted", "evicted", "failed", "succeeded"} {
		if s.get(name, &corev1.Pod{}) {
			t.Errorf("%s has a second pod", name)
		}
	}
}

// report writes what a kubelet would.
func (s *site) report(pod *corev1.Pod, edit func(*corev1.Pod)) {
	s.Helper()
	before := pod.DeepCopy()
	edit(pod)
	if err := s.Status().Patch(s.Context(), pod, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
}

func (s *site) deletePodIfAny(name string) {
	s.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := client.IgnoreNotFound(s.Delete(s.Context(), pod, client.GracePeriodSeconds(0))); err != nil {
		s.Fatal(err)
	}
	s.until("the pod is gone", func() bool { return !s.get(name, &corev1.Pod{}) })
}

// TestNodeLost: a pod that is deleted while its node is gone stays for ever half deleted. The Sandbox does not wait for it.
func TestNodeLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	node := devcluster.Node{Name: "to-be-lost", Labels: map[string]string{"only": s.namespace}, Taints: []corev1.Taint{{Key: "only", Value: s.namespace, Effect: corev1.TaintEffectNoSchedule}}}
	if err := shared.AddNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	s.tolerateAll(map[string]string{"only": s.namespace})
	s.start(nil, controller.Options{})
	s.create(sandbox("a", func(b *v1alpha1.Sandbox) {
		b.Spec.NodeSelector = map[string]string{"only": s.namespace}
		b.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}))
	s.phase("a", v1alpha1.SandboxReady)
	if err := shared.RemoveNode(t.Context(), node.Name); err != nil {
		t.Fatal(err)
	}
	s.deletePod("a")
	box := s.phase("a", v1alpha1.SandboxLost)
	if c := condition(box, v1alpha1.ConditionLost); c.Reason != v1alpha1.ReasonNodeLost || !strings.Contains(c.Message, "to-be-lost") {
		t.Errorf("%+v", c)
	}
}

// TestRestart: what a controller knows is in the cluster. While none runs one pod goes and a quota is raised; the next controller sees both.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.limit("q", "limits.memory", "1Gi")
	stop := s.start(nil, controller.Options{})
	s.create(sandbox("runs"))
	runs := s.phase("runs", v1alpha1.SandboxReady)
	s.create(sandbox("waits"))
	waits := s.reason("waits", v1alpha1.ConditionScheduled, v1alpha1.ReasonQuotaExceeded)
	stop()
	s.deletePodIfAny("runs")
	s.limit("q", "limits.memory", "2Gi")

	s.start(nil, controller.Options{})
	if box := s.phase("runs", v1alpha1.SandboxLost); box.Status.PodUID != runs.Status.PodUID || s.get("runs", &corev1.Pod{}) {
		t.Errorf("%+v", box.Status)
	}
	if box := s.phase("waits", v1alpha1.SandboxReady); box.Status.Endpoint != waits.Status.Endpoint {
		t.Errorf("%+v", box.Status)
	}
}

// TestKilledBetweenCreateAndStatus: the pod is there and nothing says so. The next controller knows it by its owner.
func TestKilledBetweenCreateAndStatus(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var created atomic.Bool
	cut := func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if created.Load() && r.Method != http.MethodGet {
				return nil, errors.New("the process is dead")
			}
			response, err := next.RoundTrip(r)
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") {
				created.Store(true)
			}
			return response, err
		})
	}
	stop := s.start(s.through(cut), controller.Options{})
	s.create(sandbox("a"))
	pod := new(corev1.Pod)
	s.until("the pod is made", func() bool { return s.get("a", pod) })
	stop()
	before := new(v1alpha1.Sandbox)
	if s.get("a", before); before.Status.PodUID != "" {
		t.Fatalf("the status was written: %+v", before.Status)
	}
	var creates atomic.Int64
	s.start(s.through(counter(http.MethodPost, "/pods", &creates)), controller.Options{})
	if box := s.phase("a", v1alpha1.SandboxReady); box.Status.PodUID != pod.UID || creates.Load() != 0 {
		t.Errorf("pod %s, status %+v, %d creates", pod.UID, box.Status, creates.Load())
	}
}

// TestLostAnswer: the API server makes the pod and the answer gets lost on the way.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var lost atomic.Int64
	lose := func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/pods") || strings.HasSuffix(r.URL.Path, "/services")) && response.StatusCode == http.StatusCreated && lost.Add(1) <= 2 {
				return nil, errors.Join(errors.New("the connection is gone"), response.Body.Close())
			}
			return response, err
		})
	}
	uids := s.uids("a")
	s.start(s.through(lose), controller.Options{})
	s.create(sandbox("a"))
	s.phase("a", v1alpha1.SandboxReady)
	if lost.Load() < 2 || len(uids()) != 1 {
		t.Errorf("%d answers, pods %v", lost.Load(), uids())
	}
}

// uids are those of all pods of a name that there have been from now on.
func (s *site) uids(name string) func() []types.UID {
	s.Helper()
	watch, err := s.Watch(s.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(watch.Stop)
	var mu sync.Mutex
	var all []types.UID
	go func() {
		seen := map[types.UID]bool{}
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Name == name && !seen[pod.UID] {
				seen[pod.UID] = true
				mu.Lock()
				all = append(all, pod.UID)
				mu.Unlock()
			}
		}
	}()
	return func() []types.UID {
		mu.Lock()
		defer mu.Unlock()
		return append([]types.UID(nil), all...)
	}
}

// TestConflict: somebody else writes the Sandbox at each turn, as a renewed lease does.
func TestConflict(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var conflicts atomic.Int64
	conflict := func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") && conflicts.Add(1) <= 5 {
				box := new(v1alpha1.Sandbox)
				if err := s.Get(r.Context(), client.ObjectKey{Namespace: s.namespace, Name: "a"}, box); err != nil {
					return nil, err
				}
				box.Annotations = map[string]string{v1alpha1.AnnotationKeepalive: time.Now().UTC().Format(time.RFC3339Nano)}
				if err := s.Update(r.Context(), box); err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(r)
		})
	}
	uids := s.uids("a")
	s.start(s.through(conflict), controller.Options{})
	s.create(sandbox("a"))
	s.phase("a", v1alpha1.SandboxReady)
	if len(uids()) != 1 {
		t.Errorf("pods %v", uids())
	}
}

// TestTwoControllers work on the same Sandboxes without a leader: one pod each, and the status that both agree on.
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	const boxes = 20
	var creates, writes atomic.Int64
	for range 2 {
		s.start(s.through(counter(http.MethodPost, "/pods", &creates), counter(http.MethodPatch, "/status", &writes)), controller.Options{})
	}
	pods, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	names := make([]string, boxes)
	for i := range names {
		names[i] = "box-" + string(rune('a'+i))
		s.create(sandbox(names[i], func(b *v1alpha1.Sandbox) {
			small := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi"), corev1.ResourceCPU: resource.MustParse("10m")}
			b.Spec.PodResources = &corev1.ResourceRequirements{Limits: small, Requests: small}
		}))
	}
	recorded := map[string]types.UID{}
	for _, name := range names {
		recorded[name] = s.phase(name, v1alpha1.SandboxReady).Status.PodUID
	}
	made := map[types.UID]string{}
	for len(made) < boxes {
		event := <-pods.ResultChan()
		if pod, ok := event.Object.(*corev1.Pod); ok {
			made[pod.UID] = pod.Name
		}
	}
	for uid, name := range made {
		if recorded[name] != uid {
			t.Errorf("%s has the pod %s and the status says %s", name, uid, recorded[name])
		}
	}
	// When all is told nothing more is written, though each event wakes both.
	settled := writes.Load()
	s.create(sandbox("last"))
	s.phase("last", v1alpha1.SandboxReady)
	t.Logf("%d Sandboxes: %d creates of pods, %d writes of status; one more: %d writes", boxes, creates.Load(), settled, writes.Load()-settled)
}

// TestTerminating: a Sandbox that somebody's finalizer holds says so, and makes nothing any more.
func TestTerminating(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.limit("q", "pods", "0")
	s.start(nil, controller.Options{Clock: stopped()})
	s.create(sandbox("a", func(b *v1alpha1.Sandbox) { b.Finalizers = []string{"example.com/hold"} }))
	box := s.reason("a", v1alpha1.ConditionReady, v1alpha1.ReasonQuotaExceeded)
	if err := s.Delete(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	s.phase("a", v1alpha1.SandboxTerminating)
	s.limit("q", "pods", "2")
	s.create(sandbox("b"))
	s.phase("b", v1alpha1.SandboxReady)
	if s.get("a", &corev1.Pod{}) {
		t.Error("a Sandbox that is being deleted got a pod")
	}
}
