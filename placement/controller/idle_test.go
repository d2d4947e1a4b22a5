package controller_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestIdle: a Sandbox whose lease lapsed is deleted; one whose lease was renewed stays, and so does one without a lease.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	s.start(nil, controller.Options{Clock: clock})
	half := func(b *v1alpha1.Sandbox) { b.Spec.IdleTimeout = &metav1.Duration{Duration: 30 * time.Minute} }
	s.create(sandbox("lapses", half))
	s.create(sandbox("renewed", half))
	s.create(sandbox("unused", half))
	s.create(sandbox("for-ever"))
	for _, name := range []string{"lapses", "renewed", "unused", "for-ever"} {
		s.phase(name, v1alpha1.SandboxReady)
	}
	s.renew("lapses", clock.Now().Add(20*time.Minute))
	clock.SetTime(clock.Now().Add(31 * time.Minute))
	s.renew("renewed", clock.Now().Add(-time.Minute)) // each write wakes the controller
	s.renew("unused", clock.Now().Add(-40*time.Minute))
	s.gone("unused")
	clock.SetTime(clock.Now().Add(20 * time.Minute))    // 51 minutes after the start
	s.renew("lapses", clock.Now().Add(-32*time.Minute)) // used in the 19th minute
	s.gone("lapses")
	s.renew("renewed", clock.Now())
	s.renew("for-ever", clock.Now().Add(-time.Hour))
	s.create(sandbox("later"))
	s.phase("later", v1alpha1.SandboxReady)
	for _, name := range []string{"renewed", "for-ever"} {
		if !s.get(name, &v1alpha1.Sandbox{}) {
			t.Errorf("%s is gone", name)
		}
	}
}

// TestIdleByItself: nobody writes anything, and the lease lapses in real time. A Sandbox that waits, or is Lost, lapses as any other.
func TestIdleByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.limit("q", "pods", "2")
	s.start(nil, controller.Options{})
	short := func(b *v1alpha1.Sandbox) { b.Spec.IdleTimeout = &metav1.Duration{Duration: 3 * time.Second} }
	s.create(sandbox("runs", short))
	s.create(sandbox("lost", short))
	s.phase("runs", v1alpha1.SandboxReady)
	s.phase("lost", v1alpha1.SandboxReady)
	s.create(sandbox("waits", short))
	s.reason("waits", v1alpha1.ConditionReady, v1alpha1.ReasonQuotaExceeded)
	s.deletePodIfAny("lost")
	s.gone("runs")
	s.gone("lost")
	s.gone("waits")
}

func (s *site) renew(name string, at time.Time) {
	s.Helper()
	box := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	before := box.DeepCopy()
	box.Annotations = map[string]string{v1alpha1.AnnotationKeepalive: at.UTC().Format(time.RFC3339)}
	if err := s.Patch(s.Context(), box, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
}

func (s *site) gone(name string) {
	s.Helper()
	s.until(name+" is gone", func() bool { return !s.get(name, &v1alpha1.Sandbox{}) })
}

// TestRenewedAtTheLastMoment: a lease that is renewed after the controller saw it lapse, and before its delete arrives, holds.
func TestRenewedAtTheLastMoment(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	var deletes atomic.Int64
	renew := func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete && deletes.Add(1) == 1 {
				s.renew("a", clock.Now())
			}
			return next.RoundTrip(r)
		})
	}
	s.start(s.through(renew), controller.Options{Clock: clock})
	s.create(sandbox("a", func(b *v1alpha1.Sandbox) { b.Spec.IdleTimeout = &metav1.Duration{Duration: 30 * time.Minute} }))
	s.phase("a", v1alpha1.SandboxReady)
	clock.SetTime(clock.Now().Add(time.Hour))
	s.renew("a", clock.Now().Add(-40*time.Minute))
	s.until("the controller deletes it", func() bool { return deletes.Load() > 0 })
	s.create(sandbox("later"))
	s.phase("later", v1alpha1.SandboxReady)
	if !s.get("a", &v1alpha1.Sandbox{}) || deletes.Load() != 1 {
		t.Errorf("it is gone, or %d deletes", deletes.Load())
	}
}
