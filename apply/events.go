package apply

import "time"

// An Event is one of the types of this file. Events hold no values of Secrets.
type Event interface{ event() }

// Applied says that an object of the set is as asked.
type Applied struct {
	Ref    Ref
	Action Action // Created, Configured, Unchanged, Minted, Recreated or Ran
}

// Removed says what became of an object that left the set, or that Remove was asked to remove.
type Removed struct {
	Ref    Ref
	Action Action // Pruned, Kept, Terminating or Absent
	Why    string
}

// Retrying says that a request failed for a reason that ends by itself.
type Retrying struct {
	Ref   Ref
	Class Class
	Err   error
	In    time.Duration
}

// Waiting says that nothing can be done until something in the cluster moves; it is sent when the reason changes.
type Waiting struct {
	Ref    Ref
	Reason string
	Since  time.Time
}

// Progress is the state of a rollout, in the words of kubectl rollout status; it is sent when it changes.
type Progress struct {
	Workload Workload
	Status   Status
}

// WaveStarted says that the objects of a wave are written from now on.
type WaveStarted struct {
	Phase   Phase
	Wave    int
	Objects int
}

// Unready is an object that is waited for, and what it waits for; it is sent when that changes.
type Unready struct {
	Ref    Ref
	Status Status
}

// HookStarted says that a hook was made, or that one that an earlier run left running is waited for (Joined).
type HookStarted struct {
	Ref    Ref
	Phase  Phase
	Joined bool
}

// LockHeld says that another converge holds the lock.
type LockHeld struct {
	Namespace, Name string
	Holder          string
	Since           time.Time
}

func (Applied) event()  {}
func (Removed) event()  {}
func (Retrying) event() {}
func (Waiting) event()  {}
func (Progress) event() {}
func (LockHeld) event() {}

func (WaveStarted) event() {}
func (Unready) event()     {}
func (HookStarted) event() {}

// Warned is a warning: one that the server sent with its answer, or that a minted Secret was gone and has new values.
type Warned struct {
	Ref  Ref
	Text string
}

func (Warned) event() {}
