package apply

import (
	"errors"
	"fmt"
	"strings"
)

// An ObjectError is a request for one object that failed for good.
type ObjectError struct {
	Ref   Ref
	Class Class
	Err   error
}

func (e *ObjectError) Error() string { return fmt.Sprintf("%s: %v", e.Ref, e.Err) }
func (e *ObjectError) Unwrap() error { return e.Err }

// A Conflict is one field that another manager owns with another value.
type Conflict struct {
	Manager string `json:"manager"` // as in metadata.managedFields, with the subresource when there is one: "kubectl (scale)"
	Field   string `json:"field"`   // ".spec.replicas"
}

// A ConflictError is a server-side apply that met fields of other managers.
type ConflictError struct {
	Ref       Ref
	Conflicts []Conflict
	Err       error
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: other managers own fields of it:", e.Ref)
	for _, c := range e.Conflicts {
		fmt.Fprintf(&b, " %s by %q,", c.Field, c.Manager)
	}
	return strings.TrimSuffix(b.String(), ",") + " — undo what they set, or name them as managers to take fields from (Conflicts.TakeFrom)"
}
func (e *ConflictError) Unwrap() error { return e.Err }

// An OwnedError is an object that carries the mark of another set.
type OwnedError struct {
	Ref   Ref
	Owner string // "<namespace>/<name>" of the other set
	Set   string // of this one
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s belongs to the set %s, not to %s; remove it from one of them, or take it over (Options.AdoptFrom)", e.Ref, e.Owner, e.Set)
}

// An InventoryError is an inventory that is there and can't be read: somebody changed it, or another release of this engine wrote it.
type InventoryError struct {
	Ref     Ref // the ConfigMap
	Version int // that of the other release; 0 when that is not what is wrong
	// Foreign says that the ConfigMap is no inventory of the set: somebody else has its name.
	Foreign bool
	Err     error
}

func (e *InventoryError) Error() string { return e.Err.Error() }
func (e *InventoryError) Unwrap() error { return e.Err }

// A SetError lists what is wrong with the objects of a set, before any request.
type SetError struct{ Problems []Problem }

// A Problem is one fault of one object.
type Problem struct {
	// Origin is where the object was read: "web.yaml:12"; empty for one that NewSet was given.
	Origin string
	Ref    Ref    // zero when the object does not say what it is
	Path   string // "metadata.annotations.debug"; empty when the object as a whole is meant
	Text   string
}

func (p Problem) String() string {
	var parts []string
	if p.Origin != "" {
		parts = append(parts, p.Origin)
	}
	if p.Origin == "" || p.Ref != (Ref{}) {
		parts = append(parts, p.Ref.String())
	}
	if p.Path != "" {
		parts = append(parts, p.Path)
	}
	return strings.Join(append(parts, p.Text), ": ")
}

func (e *SetError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

var errNoNamespace = errors.New("the kind lives in a namespace, and the object names none; set metadata.namespace")

// A TerminatingError is a namespace that is being deleted, so that nothing can be written into it.
type TerminatingError struct {
	Namespace string
	// Blocked says what holds it, in the cluster's own words; empty when the cluster says nothing.
	Blocked []string
}

func (e *TerminatingError) Error() string {
	text := fmt.Sprintf("namespace %q is terminating", e.Namespace)
	if len(e.Blocked) > 0 {
		text += ", blocked by: " + strings.Join(e.Blocked, "; ")
	}
	return text
}

// An ImmutableError is an object of which a field is to change that the server does not let change.
type ImmutableError struct {
	Ref    Ref
	Fields []string // as the server names them: "spec.template"
	Err    error
}

func (e *ImmutableError) Error() string {
	text := fmt.Sprintf("%s: %s can't be changed once it is made", e.Ref, strings.Join(e.Fields, ", "))
	if len(e.Fields) == 0 {
		text = fmt.Sprintf("%s: a field of it can't be changed once it is made: %v", e.Ref, e.Err)
	}
	if e.Ref.Group == "batch" && e.Ref.Kind == "Job" {
		return text + " — make it a hook, give it a new name, or allow Jobs to be made again"
	}
	return text + " — give it a new name, or allow its kind to be made again"
}
func (e *ImmutableError) Unwrap() error { return e.Err }

// A HookError is a hook that could not be made, or did not succeed.
type HookError struct {
	Ref   Ref
	Phase Phase
	Err   error
}

func (e *HookError) Error() string {
	head, text := fmt.Sprintf("the %s hook %s", e.Phase, e.Ref), e.Err.Error()
	for _, sep := range []string{": ", " "} { // most errors name the object already
		if rest, ok := strings.CutPrefix(text, e.Ref.String()+sep); ok {
			return head + sep + rest
		}
	}
	return head + ": " + text
}
func (e *HookError) Unwrap() error { return e.Err }
