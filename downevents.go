package jr2

import "jr2.dev/jr2/internal/event"

// What a removal does.
type (
	// DownStarted opens a removal.
	DownStarted = event.DownStarted
	// NamespaceDeleting says that a namespace was deleted and that its end is waited for.
	NamespaceDeleting = event.NamespaceDeleting
	// NamespaceHeld says what a namespace that is being deleted still waits for.
	NamespaceHeld = event.NamespaceHeld
	// NamespaceGone says that a namespace was seen to be gone.
	NamespaceGone = event.NamespaceGone
	// OperatorRemoved says what became of the operator's objects.
	OperatorRemoved = event.OperatorRemoved
	// LeftInPlace says what a removal does not touch.
	LeftInPlace = event.LeftInPlace
	// Removed closes a removal that succeeded.
	Removed = event.Removed
)
