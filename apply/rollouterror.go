package apply

import "time"

// A RolloutError is a rollout that failed or took too long, with what the cluster says about it.
type RolloutError struct {
	Workload Workload
	// Verdict is the wait's own end: "timed out after 3m0s: waiting for …", or what the cluster gave as the reason.
	Verdict   string
	Evidence  Evidence
	Diagnoses []Diagnosis
	// Err is the end of the context, or nil.
	Err error
}

// Evidence is what was read about the pods of a workload after its rollout failed.
type Evidence struct {
	// Pods holds at most three pods, those that are not ready first.
	Pods []PodEvidence
	// Owners holds the events of the workload and its ReplicaSet when there is no pod at all.
	Owners []EventEvidence
	// Notes say what is not shown and what could not be read.
	Notes []string
}

// PodEvidence is one pod.
type PodEvidence struct {
	Name, Phase, Node, Arch string
	// Scheduling is the scheduler's message while the pod has no node.
	Scheduling string
	Containers []ContainerEvidence // init containers first
	Events     []EventEvidence     // the last four, oldest first
	// Log is the tail of the log of LogOf, the first container that is not ready.
	Log   []string
	LogOf string
}

// ContainerEvidence is one container.
type ContainerEvidence struct {
	Name string
	Init bool
	// State is the waiting reason, "<reason> (exit code 1)", "ready" or "not ready"; empty when the pod has no container statuses.
	State    string
	Ready    bool
	Restarts int32
	Image    string // as in the spec
	Message  string
	// Last is the last exit of a container that waits now: "Error (exit code 1)".
	Last string
}

// EventEvidence is one event.
type EventEvidence struct {
	Type, Reason, Message string
	Object                string // "ReplicaSet web-5d4f"; empty for an event of the pod that holds it
	At                    time.Time
}

// A Diagnosis is a named cause, drawn only from evidence that is shown too.
type Diagnosis struct {
	Name string // "exec format error", "image pull", "crash loop", "container config", "quota", "priority class", "pod security", …
	Text string
}

func (e *RolloutError) Error() string { return e.Verdict }
func (e *RolloutError) Unwrap() error { return e.Err }
