package provision

import (
	"time"
)

// An Event is something that Provision did or saw. Each names the Sandbox, and by Child the Workspace: the chain of slot keys joined with
// "/", empty for the Workspace that is the root of its Workflow.
type Event interface{ about() About }

// About is what an Event is about.
type About struct {
	Sandbox string
	Child   string
}

func (a About) about() About { return a }

// Entered says that the Workspace is in another state: Placing before anything is written, Provisioning when the pod has a node, Ready.
type Entered struct {
	About
	State State
	// Node is empty while Placing.
	Node string
}

// Waiting says what the Sandbox waits for in Placing. The first one of a wait is its beginning; each later one of the same wait has
// Changed set, and says that the reason is another.
type Waiting struct {
	About
	Wait
	Changed bool
}

// WaitEnded says that a wait in Placing is over, and how long it was as a whole, whatever its reasons.
type WaitEnded struct {
	About
	Waited time.Duration
	// Placed is false when the wait was given up, or the Sandbox went.
	Placed bool
}

// Held says why a pod that has a node is not Ready, each time that the reason changes.
type Held struct {
	About
	Reason  string
	Message string
}

// Unheeded says that nobody has said anything of the Sandbox for a while: the operator may not run. The wait goes on.
type Unheeded struct {
	About
	For time.Duration
}

// Removed says that a Sandbox which never ran was deleted.
type Removed struct{ About }

// LeaseUnrenewed says that the lease could not be renewed this time. It is tried again; a Sandbox whose lease lapses for its idle timeout is
// deleted by the operator.
type LeaseUnrenewed struct {
	About
	Err error
}

// AboutOf tells what an event is about.
func AboutOf(e Event) About { return e.about() }
