package jr2

import "jr2.dev/jr2/internal/event"

// Occupants are objects of others in a namespace, as many as a person reads, and what nobody could look at.
type Occupants = event.Occupants

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
	// NamespaceStays says that a removal leaves the namespace, why, and what of others is in it.
	NamespaceStays = event.NamespaceStays
	// InstanceRemoved says what became of the objects of the Instance in a namespace that stays.
	InstanceRemoved = event.InstanceRemoved
	// ObjectWaiting says which object of a removal is still there, and what holds it.
	ObjectWaiting = event.ObjectWaiting
	// OperatorRemoved says what became of the operator's objects.
	OperatorRemoved = event.OperatorRemoved
	// LeftInPlace says what a removal does not touch.
	LeftInPlace = event.LeftInPlace
	// Removed closes a removal that succeeded.
	Removed = event.Removed
)
