package controller_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// refusedFor waits for the condition that says why there is no pod.
func (s *site) refusedFor(name, reason string) metav1.Condition {
	s.Helper()
	box := s.reason(name, v1alpha1.ConditionScheduled, reason)
	c := condition(box, v1alpha1.ConditionScheduled)
	if ready := condition(box, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || ready.Reason != reason || ready.Message != c.Message || box.Status.Phase != v1alpha1.SandboxPending || box.Status.PodUID != "" {
		s.Errorf("%s: %+v", name, box.Status)
	}
	return c
}

// TestInvalid: what the API server does not take is told in its words. It is not tried again and again, and at once when the spec changes.
func TestInvalid(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var creates atomic.Int64
	s.start(s.through(counter(http.MethodPost, "/pods", &creates)), controller.Options{Clock: stopped()})
	s.create(sandbox("mount", func(b *v1alpha1.Sandbox) {
		b.Spec.VolumeMounts = []corev1.VolumeMount{{Name: "absent", MountPath: "/x"}}
	}))
	if c := s.refusedFor("mount", v1alpha1.ReasonPodInvalid); !strings.Contains(c.Message, `spec.containers[0].volumeMounts[0].name: Not found: "absent"`) {
		t.Errorf("%+v", c)
	}
	s.create(sandbox("not.a.host")) // its Service can't have that name
	if c := s.refusedFor("not.a.host", v1alpha1.ReasonPodInvalid); !strings.Contains(c.Message, "metadata.name") {
		t.Errorf("%+v", c)
	}
	if n := creates.Load(); n != 1 {
		t.Errorf("%d creates of pods", n)
	}
	box := new(v1alpha1.Sandbox)
	s.get("mount", box)
	box.Spec.VolumeMounts = nil
	if err := s.Update(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	s.phase("mount", v1alpha1.SandboxReady)
}

// TestNameTaken: a pod or a Service of the name that belongs to somebody else is told and left alone. When it goes the Sandbox goes on.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	labels := map[string]string{"app.kubernetes.io/managed-by": controller.ManagedBy} // even one that looks like ours
	// On no node: the simulated kubelet deletes by name what is being deleted, and may hit the pod that comes next.
	spec := corev1.PodSpec{NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	s.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Labels: labels}, Spec: spec})
	s.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}, Spec: spec})
	s.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "service", Labels: labels}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}})
	foreign := map[string]client.Object{"pod": new(corev1.Pod), "stranger": new(corev1.Pod), "service": new(corev1.Service)}
	s.start(nil, controller.Options{})
	for name, object := range foreign {
		s.create(sandbox(name))
		kind := "pod"
		if name == "service" {
			kind = "Service"
		}
		if c := s.refusedFor(name, v1alpha1.ReasonNameTaken); c.Message != "a "+kind+` named "`+name+`" is there and does not belong to this Sandbox` {
			t.Errorf("%+v", c)
		}
		if !s.get(name, object) || len(object.GetOwnerReferences()) != 0 {
			t.Errorf("%s was adopted", name)
		}
		if err := s.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		s.phase(name, v1alpha1.SandboxReady)
	}
}

// TestAnotherOwner: what another Sandbox left, as one of the same name that was made before does, is waited for: neither adopted, nor does the
// Sandbox get lost with it.
func TestAnotherOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(nil, controller.Options{})
	s.create(sandbox("other"))
	other := s.phase("other", v1alpha1.SandboxReady)
	left, service := controller.Pod(other, nil), controller.Service(other)
	left.Name, service.Name = "a", "a"
	left.Spec.NodeSelector = map[string]string{"no": "node"} // as in TestNameTaken
	s.create(left)
	s.create(service)
	s.create(sandbox("a"))
	for _, left := range []struct {
		kind   string
		object client.Object
	}{{"Service", service}, {"pod", left}} {
		want := "a " + left.kind + ` named "a" is there and does not belong to this Sandbox but to the Sandbox "other" with the UID ` + string(other.UID)
		s.box("a", "says what is in its way", func(b *v1alpha1.Sandbox) bool {
			c := condition(b, v1alpha1.ConditionScheduled)
			return c.Reason == v1alpha1.ReasonNameTaken && c.Message == want
		})
		if err := s.Delete(t.Context(), left.object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	if box := s.phase("a", v1alpha1.SandboxReady); box.Status.PodUID == left.UID {
		t.Errorf("%+v", box.Status)
	}
}

// TestPodSecurity: admission that is no quota is told as well.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	s.start(nil, controller.Options{Clock: stopped()})
	s.create(sandbox("a", func(b *v1alpha1.Sandbox) {
		b.Spec.Repos = []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}}
	}))
	if c := s.refusedFor("a", v1alpha1.ReasonPodRefused); !strings.Contains(c.Message, `violates PodSecurity "restricted:latest"`) || !strings.Contains(c.Message, "hostPath") {
		t.Errorf("%+v", c)
	}
}

// TestSecondPod: one that came about though the first was written down is ended, and the Sandbox is Lost with its first.
func TestSecondPod(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	stop := s.start(nil, controller.Options{})
	s.create(sandbox("a"))
	box := s.phase("a", v1alpha1.SandboxReady)
	stop()
	s.deletePodIfAny("a")
	second := controller.Pod(box, nil)
	s.create(second)
	s.start(nil, controller.Options{})
	if lost := s.phase("a", v1alpha1.SandboxLost); lost.Status.PodUID != box.Status.PodUID || reasonOf(lost, v1alpha1.ConditionLost) != v1alpha1.ReasonPodDeleted {
		t.Errorf("%+v", lost.Status)
	}
	s.until("the second pod is ended", func() bool { return !s.get("a", &corev1.Pod{}) })
}

// TestServiceIsMadeAgain: a Service that somebody deletes comes back, and the pod stays.
func TestServiceIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(nil, controller.Options{})
	s.create(sandbox("a"))
	box := s.phase("a", v1alpha1.SandboxReady)
	service := new(corev1.Service)
	s.get("a", service)
	first := service.UID
	if err := s.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	s.until("the Service is made again", func() bool { return s.get("a", service) && service.UID != first })
	if now := s.phase("a", v1alpha1.SandboxReady); now.Status.PodUID != box.Status.PodUID {
		t.Error("another pod")
	}
}

// TestNoKinds: without the kinds Run ends at once and says what is missing. What can't be asked is another error.
func TestNoKinds(t *testing.T) {
	t.Parallel()
	if !errors.Is(withoutKinds, controller.ErrNoKinds) {
		t.Errorf("got %v", withoutKinds)
	}
	s := newSite(t, nil)
	broken := s.through(func(http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no network") })
	})
	if err := controller.Run(t.Context(), broken, controller.Options{}); err == nil || errors.Is(err, controller.ErrNoKinds) {
		t.Errorf("got %v", err)
	}
}
