package warm

import "fmt"

// A Warning is something that makes warmth less than it is meant to be, and stops nothing.
type Warning struct {
	// Code is one of the constants below.
	Code string `json:"code"`
	// Object names what it is about: "PriorityClass jr2-sandbox".
	Object string `json:"object"`
	// Message is the whole sentence for a person, with the fix in it.
	Message string `json:"message"`
	// Fix is what to change, alone.
	Fix string `json:"fix,omitempty"`
}

// Stable codes of the warnings.
const (
	// MovingTag is an image without a version.
	MovingTag = "warm-image-moves"
	// NeverPreempts is a priority class of Sandboxes that can't take a placeholder's place.
	NeverPreempts = "sandbox-never-preempts"
	// Expendable is a priority of placeholders that the cluster autoscaler ignores.
	Expendable = "placeholder-expendable"
	// TooSmall is a placeholder whose room is less than one Sandbox asks for.
	TooSmall = "placeholder-too-small"
	// CountedByQuota is a quota that counts placeholders and Sandboxes together.
	CountedByQuota = "placeholder-in-quota"
)

// An ImageError is a reference that can't be read.
type ImageError struct {
	Ref string
	Err error
}

func (e *ImageError) Error() string {
	return fmt.Sprintf("refusing: image %q can't be kept warm: %v", e.Ref, e.Err)
}

func (e *ImageError) Unwrap() error { return e.Err }

// A ValueError is a field of Capacity with a value that means nothing.
type ValueError struct {
	// Field as in JSON, such as "replicas".
	Field string
	Value string
	// Want says what would be right.
	Want string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("refusing: %s of the placeholders is %s — %s", e.Field, e.Value, e.Want)
}

// A PriorityError is a priority at which placeholders would not give way.
type PriorityError struct{ Priority int32 }

func (e *PriorityError) Error() string {
	return fmt.Sprintf("refusing: placeholders with the priority %d would not give way to pods without a priority — keep it below 0 (the default is %d)", e.Priority, DefaultPriority)
}

// A SandboxPriorityError says that Sandboxes can't take the place of placeholders because they come no earlier.
type SandboxPriorityError struct {
	// Class is the priority class of Sandboxes; "" when they have none.
	Class                string
	Sandbox, Placeholder int32
}

func (e *SandboxPriorityError) Error() string {
	class := fmt.Sprintf("Sandboxes (PriorityClass %s)", e.Class)
	if e.Class == "" {
		class = "Sandboxes (no PriorityClass)"
	}
	return fmt.Sprintf("refusing: %s have the priority %d and placeholders %d, so placeholders would keep Sandboxes out instead of holding their place — give Sandboxes a higher priority, or placeholders a lower one",
		class, e.Sandbox, e.Placeholder)
}
