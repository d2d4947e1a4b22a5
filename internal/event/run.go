package event

import "time"

// RunStarted opens a run.
type RunStarted struct {
	RunID     string `json:"runId"`
	Workflow  string `json:"workflow"`
	Instance  string `json:"instance"`
	Context   string `json:"context"`
	Namespace string `json:"namespace"`
}

// WorkspaceEntered says that a Workspace of a run is in another state: "placing", "provisioning" or "ready". Child is its path, slot keys
// joined with "/", and empty for the Workspace that is the root.
type WorkspaceEntered struct {
	Child   string `json:"child"`
	Sandbox string `json:"sandbox"`
	State   string `json:"state"`
	// Node is empty in "placing".
	Node string `json:"node,omitempty"`
}

// PlacingWaiting says what a Workspace waits for in "placing".
type PlacingWaiting struct {
	Child   string `json:"child"`
	Sandbox string `json:"sandbox"`
	// On is "node", "quota", "pod" (the API server does not take it) or "gate" (a scheduling gate holds it), For the same in words.
	On  string `json:"on"`
	For string `json:"for"`
	// Message is in the words of the scheduler, the quota or the API server.
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
	// Never says that no room that others free helps.
	Never bool `json:"never,omitempty"`
	// Changed says that the wait went on for another reason: its beginning was told.
	Changed bool `json:"changed,omitempty"`
}

// PlacingEnded says that such a wait is over.
type PlacingEnded struct {
	Child   string `json:"child"`
	Sandbox string `json:"sandbox"`
	// Seconds is how long it was, whatever its reasons.
	Seconds int `json:"seconds"`
	// Placed is false when the wait was given up.
	Placed bool `json:"placed"`
}

// WorkspaceHeld says why a Workspace in "provisioning" is not ready.
type WorkspaceHeld struct {
	Child   string `json:"child"`
	Sandbox string `json:"sandbox"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// SandboxRemoved says that a Sandbox was deleted: it never ran, or its run is over.
type SandboxRemoved struct {
	Child   string `json:"child"`
	Sandbox string `json:"sandbox"`
	Ran     bool   `json:"ran,omitempty"`
}

func (RunStarted) Type() string       { return "runStarted" }
func (WorkspaceEntered) Type() string { return "workspaceEntered" }
func (PlacingWaiting) Type() string   { return "placingWaiting" }
func (PlacingEnded) Type() string     { return "placingEnded" }
func (WorkspaceHeld) Type() string    { return "workspaceHeld" }
func (SandboxRemoved) Type() string   { return "sandboxRemoved" }
