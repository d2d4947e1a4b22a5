package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"jr2.dev/jr2/internal/clip"
)

// LockOptions say how Lock works; the zero value waits for a lock of 15 s.
type LockOptions struct {
	// Fail makes Lock return a *LockedError instead of waiting for another holder.
	Fail bool
	// Duration is how long the lock outlives a holder that stops renewing it; 15 s when 0, at least 1 s, at most MaxLockDuration. It is renewed at a
	// third.
	Duration time.Duration
	// Gone says of a holder, by the identity that it gave, that it is known to be gone, so that its lock need not expire: a process
	// of this machine that has ended. Nil knows nothing.
	Gone func(identity string) bool
	// Events receives LockHeld when it waits; nil discards.
	Events func(Event)

	most time.Duration // MaxLockDuration, but for tests
}

// MaxLockDuration bounds how long a Lease that nobody renews keeps others out, whatever it says: who may write Leases may write any number there.
const MaxLockDuration = 2 * time.Minute

// A LockedError names who holds a lock.
type LockedError struct {
	Namespace, Name string
	Holder          string // as the Lease has it, which anybody may have written
	Since           time.Time
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s holds the lock %s/%s since %s; when nobody of that name is at work: %s", e.Holder, e.Namespace, e.Name,
		e.Since.UTC().Format(time.RFC3339), BreakLock(e.Namespace, e.Name))
}

// BreakLock is what a person types to take a lock away from whoever holds it.
func BreakLock(namespace, name string) string {
	return "kubectl delete lease " + name + " -n " + namespace
}

// ErrLockLost is the cause of the end of a context that Lock returned, when somebody else took the lock or it could not be renewed.
var ErrLockLost = errors.New("the lock was lost")

// Lock takes the Lease namespace/name for identity, a text that tells a person who holds it ("ana@laptop"); each call is a holder of
// its own. It keeps renewing it in the background until release is called, which may be called more than once; the context that it
// returns ends with the cause ErrLockLost when that fails. The lock of a holder that crashed expires: a Lease counts as expired when
// nobody changed it for its duration as observed here, so that clocks need not agree. What the Lease says of its duration is believed
// between the own one and MaxLockDuration. client-go's leader election would do, but it reports to the process's log and can't fail at once.
func Lock(ctx context.Context, client kubernetes.Interface, namespace, name, identity string, opts LockOptions) (held context.Context, release func(), err error) {
	if opts.Duration <= 0 {
		opts.Duration = defaultLock
	}
	opts.Duration = min(max(opts.Duration, time.Second), MaxLockDuration)
	if opts.most == 0 {
		opts.most = MaxLockDuration
	}
	l := &lease{
		leases: client.CoordinationV1().Leases(namespace), namespace: namespace, name: name,
		holder: identity + holderSeparator + rand.Text(), opts: opts, events: &emitter{fn: opts.Events},
	}
	if err := l.acquire(ctx); err != nil {
		return ctx, func() {}, err
	}
	held, cancel := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.renew(renewing, cancel)
	}()
	var once sync.Once
	return held, func() {
		once.Do(func() {
			stop()
			<-ended
			l.free(context.WithoutCancel(ctx))
			cancel(context.Canceled)
		})
	}, nil
}

const defaultLock = 15 * time.Second

// holderSeparator stands between the identity and what makes a holder unique.
const holderSeparator = " #"

type lease struct {
	leases          typedcoordinationv1.LeaseInterface
	namespace, name string
	holder          string
	opts            LockOptions
	events          *emitter
	dryRun          []string // of every write; empty but for TryLock

	mine *coordinationv1.Lease // as last written by this holder
}

// acquire tries until the lock is taken. It observes the other holder's Lease: unchanged for its duration, it is expired.
func (l *lease) acquire(ctx context.Context) error {
	var version, told string
	var since time.Time
	tellings := 0
	for {
		now, err := l.leases.Get(ctx, l.name, metav1.GetOptions{})
		switch {
		case Classify(err) == ClassNotFound:
			err = l.create(ctx)
		case err == nil && (holderOf(now) == "" || l.isGone(now)):
			err = l.take(ctx, now)
		case err == nil:
			if now.ResourceVersion != version {
				if l.opts.Fail && (version != "" || !l.looksExpired(now)) {
					return l.lockedBy(now)
				}
				version, since = now.ResourceVersion, time.Now()
			}
			if time.Since(since) >= l.durationOf(now) {
				err = l.take(ctx, now)
				break
			}
			if holderOf(now) != told && tellings < mostHolders {
				told = holderOf(now)
				tellings++
				l.events.emit(LockHeld{Namespace: l.namespace, Name: l.name, Holder: person(told), Since: acquiredAt(now)})
			}
		}
		if l.mine != nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && Classify(err) != ClassAlreadyExists && !Classify(err).Retryable() {
			return fmt.Errorf("the lock %s/%s: %w", l.namespace, l.name, err)
		}
		if err := sleep(ctx, l.opts.Duration/15); err != nil {
			return err
		}
	}
}

// mostHolders is how many holders are told of while one waits: a name that somebody changes all the time is no news.
const mostHolders = 20

func (l *lease) isGone(now *coordinationv1.Lease) bool {
	return l.opts.Gone != nil && l.opts.Gone(person(holderOf(now)))
}

func (l *lease) create(ctx context.Context) error {
	mine, err := l.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name}, Spec: l.spec(nil)}, metav1.CreateOptions{DryRun: l.dryRun})
	if err == nil {
		l.mine = mine
	}
	return err
}

// take writes this holder into exactly the Lease that was read, so that of two racers one wins.
func (l *lease) take(ctx context.Context, now *coordinationv1.Lease) error {
	next := now.DeepCopy()
	next.Spec = l.spec(now.Spec.LeaseTransitions)
	mine, err := l.leases.Update(ctx, next, metav1.UpdateOptions{DryRun: l.dryRun})
	if err == nil {
		l.mine = mine
	}
	return err
}

func (l *lease) spec(transitions *int32) coordinationv1.LeaseSpec {
	now := metav1.NewMicroTime(time.Now())
	seconds := int32((l.opts.Duration + time.Second - 1) / time.Second)
	next := int32(0)
	if transitions != nil && *transitions >= 0 && *transitions < math.MaxInt32 {
		next = *transitions + 1
	}
	return coordinationv1.LeaseSpec{HolderIdentity: &l.holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now, LeaseTransitions: &next}
}

// renew keeps the lock until ctx ends, or ends lost's context when it can't. It gives up before others may take the lock.
func (l *lease) renew(ctx context.Context, lost context.CancelCauseFunc) {
	renewed := time.Now()
	pause := l.opts.Duration / 3
	for sleep(ctx, pause) == nil {
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, l.opts.Duration/3)
		err := l.renewOnce(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			renewed, pause = began, l.opts.Duration/3
			continue
		case errors.Is(err, ErrLockLost), time.Since(renewed) >= max(l.opts.Duration*2/3, lockPatience):
			lost(fmt.Errorf("%w: %w", ErrLockLost, err))
			return
		}
		pause = l.opts.Duration / 15
	}
}

// lockPatience is how long a lock outlives the API server's absence: without it nobody else can take the lock either, and the first answer
// tells whose it is. Somebody who was only cut off from a server that others reach may write until then; what is written is tied to the
// versions that were read, and is what both want.
const lockPatience = time.Minute

func (l *lease) renewOnce(ctx context.Context) error {
	next := l.mine.DeepCopy()
	spec := l.spec(nil) // all of it: others read what somebody wrote there meanwhile
	spec.AcquireTime, spec.LeaseTransitions = l.mine.Spec.AcquireTime, l.mine.Spec.LeaseTransitions
	next.Spec = spec
	mine, err := l.leases.Update(ctx, next, metav1.UpdateOptions{})
	if c := Classify(err); c == ClassStale || c == ClassNotFound {
		read, readErr := l.leases.Get(ctx, l.name, metav1.GetOptions{})
		if readErr == nil && holderOf(read) == l.holder { // our own renewal, whose answer was lost, or a label of somebody
			l.mine = read
			return err
		}
		if readErr == nil || Classify(readErr) == ClassNotFound {
			return fmt.Errorf("%w: %w", ErrLockLost, err)
		}
		return readErr
	}
	if err == nil {
		l.mine = mine
	}
	return err
}

// free gives the lock back; a lock that stays behind expires.
func (l *lease) free(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, l.opts.Duration/3)
	defer cancel()
	next := l.mine.DeepCopy()
	next.Spec.HolderIdentity = nil
	_, _ = l.leases.Update(bounded, next, metav1.UpdateOptions{})
}

func (l *lease) lockedBy(now *coordinationv1.Lease) error {
	return &LockedError{Namespace: l.namespace, Name: l.name, Holder: person(holderOf(now)), Since: acquiredAt(now)}
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// person is the identity as it was given to Lock.
func person(holder string) string {
	if i := strings.LastIndex(holder, holderSeparator); i >= 0 {
		holder = holder[:i]
	}
	return clip.Text(holder)
}

func acquiredAt(l *coordinationv1.Lease) time.Time {
	if l.Spec.AcquireTime == nil {
		return time.Time{}
	}
	return l.Spec.AcquireTime.Time
}

// durationOf is how long a Lease keeps others out, between two bounds.
func durationOf(l *coordinationv1.Lease, least, most time.Duration) time.Duration {
	says := defaultLock
	if l.Spec.LeaseDurationSeconds != nil {
		says = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	return min(max(says, least), most)
}

// durationOf believes no less than the own duration: who writes less into the Lease of somebody who is at work must not have it taken away.
func (l *lease) durationOf(now *coordinationv1.Lease) time.Duration {
	return durationOf(now, l.opts.Duration, l.opts.most)
}

// LockHolder says who holds a lock by its Lease, as a person gave it, and since when; held is false for one that nobody holds or whose holder has
// not renewed it for its duration, by the clock of this machine.
func LockHolder(l *coordinationv1.Lease) (who string, since time.Time, held bool) {
	if holderOf(l) == "" || looksExpired(l, 0, MaxLockDuration) {
		return "", time.Time{}, false
	}
	return person(holderOf(l)), acquiredAt(l), true
}

// looksExpired goes by the clocks, so it only decides whether to look again. A time to come is none at which somebody renewed it.
func looksExpired(l *coordinationv1.Lease, least, most time.Duration) bool {
	if l.Spec.RenewTime == nil {
		return true
	}
	ago := time.Since(l.Spec.RenewTime.Time)
	return ago > durationOf(l, least, most) || ago < -most
}

func (l *lease) looksExpired(now *coordinationv1.Lease) bool {
	return looksExpired(now, l.opts.Duration, l.opts.most)
}
