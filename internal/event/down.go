package event

// DownStarted opens a removal.
type DownStarted struct {
	Instance  string `json:"instance"`
	Context   string `json:"context"`
	Namespace string `json:"namespace"`
	// All says that the operator goes too.
	All bool `json:"all"`
}

// NamespaceDeleting says that a namespace was deleted and that its end is waited for.
type NamespaceDeleting struct {
	Name string `json:"name"`
}

// NamespaceHeld says what a namespace that is being deleted still waits for, in the server's words.
type NamespaceHeld struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// NamespaceGone says that a namespace was seen to be gone.
type NamespaceGone struct {
	Name string `json:"name"`
}

// NamespaceStays says that a removal leaves the namespace, why, and what of others is in it.
type NamespaceStays struct {
	Name   string    `json:"name"`
	Why    string    `json:"why"`
	Others Occupants `json:"others,omitzero"`
}

// InstanceRemoved says what became of the objects of the Instance in a namespace that stays.
type InstanceRemoved struct {
	Namespace string   `json:"namespace"`
	Changes   []Change `json:"changes"`
}

// ObjectWaiting says which object of a removal is still there, and what holds it.
type ObjectWaiting struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// OperatorRemoved says what became of the operator's objects.
type OperatorRemoved struct {
	Changes []Change `json:"changes"`
}

// LeftInPlace says what a removal does not touch.
type LeftInPlace struct {
	What []string `json:"what"`
}

// Removed closes a removal that succeeded.
type Removed struct {
	Instance string `json:"instance"`
	Context  string `json:"context"`
}

func (DownStarted) Type() string       { return "downStarted" }
func (NamespaceDeleting) Type() string { return "namespaceDeleting" }
func (NamespaceHeld) Type() string     { return "namespaceHeld" }
func (NamespaceGone) Type() string     { return "namespaceGone" }
func (NamespaceStays) Type() string    { return "namespaceStays" }
func (InstanceRemoved) Type() string   { return "instanceRemoved" }
func (ObjectWaiting) Type() string     { return "objectWaiting" }
func (OperatorRemoved) Type() string   { return "operatorRemoved" }
func (LeftInPlace) Type() string       { return "leftInPlace" }
func (Removed) Type() string           { return "removed" }
