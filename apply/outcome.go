package apply

// An Action is what happened to one object.
type Action string

const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Pruned     Action = "pruned"
	// Ran is a hook that ran to its end.
	Ran Action = "ran"
	// Minted is a Secret for which values were made; Why names the keys.
	Minted Action = "minted"
	// Recreated is an object that was deleted and made again, because a field of it is immutable; Why names the field.
	Recreated Action = "recreated"
	// Kept is an object that left the set and stays in the cluster; Why says for which reason.
	Kept Action = "kept"
	// Terminating is an object that was deleted and is held by finalizers; Why names them. The next Apply looks again.
	Terminating Action = "terminating"
	// Absent is an object that was to be removed and was not there.
	Absent Action = "absent"
)

// An ObjectResult is what Apply or Remove did to one object.
type ObjectResult struct {
	Ref    Ref    `json:"ref"`
	UID    string `json:"uid,omitempty"`
	Action Action `json:"action"`
	Why    string `json:"why,omitempty"`
}

// An Outcome is what one Apply did. It is returned with an error too, and then holds what was done until then.
type Outcome struct {
	// Objects holds the objects of the set in the order of the set, then those that were pruned, kept or are terminating.
	Objects []ObjectResult `json:"objects"`
}

// Changed counts the objects that were created, configured, pruned, minted or recreated, and the hooks that ran.
func (o *Outcome) Changed() int {
	n := 0
	for _, r := range o.Objects {
		switch r.Action {
		case Created, Configured, Pruned, Ran, Minted, Recreated:
			n++
		}
	}
	return n
}

// Count counts the objects to which one thing happened.
func (o *Outcome) Count(a Action) int {
	n := 0
	for _, r := range o.Objects {
		if r.Action == a {
			n++
		}
	}
	return n
}

// Did returns the action for an object, or "" when the Outcome does not hold it.
func (o *Outcome) Did(r Ref) Action {
	for _, x := range o.Objects {
		if x.Ref.key() == r.key() {
			return x.Action
		}
	}
	return ""
}
