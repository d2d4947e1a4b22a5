package apply_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// A Lease that somebody wrote holds nobody up for ever, whatever it says, as long as nobody renews it.
func TestAForgedLeaseIsTakenAtLast(t *testing.T) {
	t.Parallel()
	client := typed(t)
	now := time.Now()
	at := func(d time.Duration) *metav1.MicroTime { m := metav1.NewMicroTime(now.Add(d)); return &m }
	holder := func(s string) *string { return &s }
	seconds := func(n int32) *int32 { return &n }
	for name, spec := range map[string]coordinationv1.LeaseSpec{
		"for 68 years":         {HolderIdentity: holder("eve #1"), LeaseDurationSeconds: seconds(math.MaxInt32), RenewTime: at(0), AcquireTime: at(0)},
		"renewed in 100 years": {HolderIdentity: holder("eve #1"), LeaseDurationSeconds: seconds(math.MaxInt32), RenewTime: at(100 * 365 * 24 * time.Hour), AcquireTime: at(0)},
		"without any time":     {HolderIdentity: holder("eve")},
		"taken very often":     {HolderIdentity: holder("eve"), LeaseDurationSeconds: seconds(3600), RenewTime: at(0), LeaseTransitions: seconds(math.MaxInt32)},
		"a name of 400 KB":     {HolderIdentity: holder(strings.Repeat("\x1b[2J ", 80_000)), LeaseDurationSeconds: seconds(3600), RenewTime: at(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			_, err := client.CoordinationV1().Leases(ns).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			told := 0
			opts := apply.LockOptions{Duration: time.Second, Events: func(e apply.Event) {
				if e, ok := e.(apply.LockHeld); ok {
					told++
					if len(e.Holder) > 300 || e.Name != "l" {
						t.Errorf("told %d bytes", len(e.Holder))
					}
				}
			}}.Most(2 * time.Second)
			_, release, err := apply.Lock(t.Context(), client, ns, "l", "ana", opts)
			if err != nil || told != 1 {
				t.Fatalf("%v, told %d times", err, told)
			}
			release()
		})
	}
}

// The lock of somebody who is at work is not taken because somebody wrote a short duration into his Lease, and his next renewal mends it.
func TestAShortenedLeaseIsNotStolen(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	client := typed(t)
	leases := client.CoordinationV1().Leases(ns)
	held, release, err := apply.Lock(t.Context(), client, ns, "l", "ana", apply.LockOptions{Duration: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	_, err = leases.Patch(t.Context(), "l", types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":1,"renewTime":"2001-01-01T00:00:00.000000Z"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() {
		_, second, err := apply.Lock(t.Context(), client, ns, "l", "bo", apply.LockOptions{Duration: 6 * time.Second})
		second()
		taken <- err
	}()
	for mended := false; !mended; {
		select {
		case <-t.Context().Done():
			t.Fatal("nobody mended it")
		case err := <-taken:
			t.Fatalf("it was stolen: %v", err)
		case <-held.Done():
			t.Fatal("it was lost")
		case <-time.After(100 * time.Millisecond):
			now, err := leases.Get(t.Context(), "l", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			mended = *now.Spec.LeaseDurationSeconds == 6 && now.Spec.RenewTime.Year() > 2001
		}
	}
	release()
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

// Of a lock that somebody holds the error names the command that takes it away from him, and no more of his name than a line.
func TestALockedErrorNamesTheWayOn(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	client := typed(t)
	_, release, err := apply.Lock(t.Context(), client, ns, "l", strings.Repeat("eve", 10_000), apply.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	_, _, err = apply.Lock(t.Context(), client, ns, "l", "ana", apply.LockOptions{Fail: true})
	var locked *apply.LockedError
	if !errors.As(err, &locked) || len(locked.Holder) > 300 || !strings.Contains(err.Error(), "kubectl delete lease l -n "+ns) {
		t.Errorf("got %.400s", err)
	}
}
