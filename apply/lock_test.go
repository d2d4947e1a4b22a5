package apply_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/apply"
)

func TestLockKeepsTheSecondOut(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	client := typed(t)
	held, release, err := apply.Lock(t.Context(), client, ns, "jr2-converge", "ana@laptop", apply.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = apply.Lock(t.Context(), client, ns, "jr2-converge", "ana@laptop", apply.LockOptions{Fail: true})
	var locked *apply.LockedError
	if !errors.As(err, &locked) || locked.Holder != "ana@laptop" || time.Since(locked.Since) > time.Minute {
		t.Fatalf("got %v", err)
	}

	told := make(chan apply.LockHeld, 1)
	taken := make(chan error, 1)
	go func() {
		_, second, err := apply.Lock(t.Context(), client, ns, "jr2-converge", "bo@desk", apply.LockOptions{Events: func(e apply.Event) {
			if e, ok := e.(apply.LockHeld); ok {
				told <- e
			}
		}})
		second()
		taken <- err
	}()
	if e := <-told; e.Holder != "ana@laptop" {
		t.Errorf("told %+v", e)
	}
	if held.Err() != nil {
		t.Fatal("the lock was lost")
	}
	release()
	release()
	if err := <-taken; err != nil {
		t.Error(err)
	}
	if held.Err() == nil {
		t.Error("the context of a lock that was given back goes on")
	}
}

// The lock of a holder that crashed expires, and one that fails at once does not take a stale Lease for a holder.
func TestLockOfACrashedHolderExpires(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	client := typed(t)
	holder, seconds := "gone@host #x", int32(1)
	long := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	_, err := client.CoordinationV1().Leases(ns).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &long, AcquireTime: &long}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := apply.Lock(t.Context(), client, ns, "l", "ana", apply.LockOptions{Fail: true, Duration: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// A holder that can't renew ends its context before another may take the lock; so does one whose lock was taken away.
func TestLockLost(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	var away atomic.Bool
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if away.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return next.RoundTrip(r)
	})
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	held, release, err := apply.Lock(t.Context(), client, ns, "l", "ana", apply.LockOptions{Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	<-held.Done()
	release()
	if !errors.Is(context.Cause(held), apply.ErrLockLost) {
		t.Errorf("cause %v", context.Cause(held))
	}
	away.Store(false)

	held, release, err = apply.Lock(t.Context(), client, ns, "l", "bo", apply.LockOptions{Duration: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	leases := client.CoordinationV1().Leases(ns)
	if _, err := leases.Patch(t.Context(), "l", "application/merge-patch+json", []byte(`{"spec":{"holderIdentity":"eve"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	<-held.Done()
	if cause := context.Cause(held); !errors.Is(cause, apply.ErrLockLost) || strings.Contains(cause.Error(), "refused") {
		t.Errorf("cause %v", cause)
	}
}
