package jr2

import "jr2.dev/jr2/internal/event"

// What a run does.
type (
	// RunStarted opens a run.
	RunStarted = event.RunStarted
	// WorkspaceEntered says that a Workspace is in another state.
	WorkspaceEntered = event.WorkspaceEntered
	// PlacingWaiting says what a Workspace waits for in Placing.
	PlacingWaiting = event.PlacingWaiting
	// PlacingEnded says that such a wait is over.
	PlacingEnded = event.PlacingEnded
	// WorkspaceHeld says why a placed Workspace is not ready.
	WorkspaceHeld = event.WorkspaceHeld
	// SandboxRemoved says that a Sandbox was deleted.
	SandboxRemoved = event.SandboxRemoved
)
