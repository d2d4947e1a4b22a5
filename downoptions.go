package jr2

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
)

// DownOptions say what to remove and from where. The zero DownOptions removes the Instance of the folder around the working directory from
// the kubeconfig's current context, and stops because there is nobody to ask.
type DownOptions struct {
	// Name is the Instance's name; then no folder is read.
	Name string
	// Instance is the Instance as a Go value; then no folder is read. Name wins over it.
	Instance *config.Instance
	// Dir, Env, Outermost and Isolate find and read the folder, as in Options.
	Dir       string
	Env       map[string]string
	Outermost string
	Isolate   []string

	// Config, Kubeconfig, Context and Namespace choose the cluster and the namespace, as in Options.
	Config     *rest.Config
	Kubeconfig string
	Context    string
	Namespace  string

	// All removes the operator too, which all Instances of the cluster share, and with its kinds all their Sandboxes and Repos. It leaves
	// an operator alone that the configuration calls unmanaged.
	All bool
	// Yes agrees without asking.
	Yes bool
	// Confirm asks whether the removal may go on. Nil means that nobody can be asked: *UnconfirmedError.
	Confirm func(context.Context, Removal) (bool, error)
	// Timeout bounds the wait for each thing that is deleted; names.HarnessTimeout (13 minutes) when 0, because a pod may drain for ten
	// minutes. What holds it then is named by a *HeldError.
	Timeout time.Duration
	// Holder tells converges who holds the lock; host and process id when empty.
	Holder string

	// Events receives what happens, one call at a time; nil discards.
	Events func(Event)
}

// Deployment is an Instance in its namespace.
type Deployment struct {
	Instance  string `json:"instance"`
	Namespace string `json:"namespace"`
}

// Removal is what somebody must agree to before anything is deleted.
type Removal struct {
	Instance  string
	Context   string
	Namespace string
	// Absent says that the namespace is gone already, or is no Instance's any more, and only the operator is left.
	Absent bool
	// All says that the operator goes too; Others are the cluster's other Instances, which lose their Sandboxes and Repos with it.
	All    bool
	Others []Deployment
	// Strays are Sandboxes and Repos in namespaces of no Instance, which go with their kinds when All is set.
	Strays Occupants
	// Stays is why the namespace stays and only the objects of the Instance go; empty when the namespace goes with everything in it.
	Stays string
	// Objects counts what of the Instance goes from a namespace that stays; what these objects own goes with them.
	Objects int
	// Holds is what stays in it: objects that are not the Instance's, and kinds that could not be looked at.
	Holds Occupants
}

// Question is the text that asks for the agreement, without a line end.
func (r Removal) Question() string { return r.text() + " [y/N] " }

func (r Removal) text() string {
	var what []string
	switch {
	case r.Absent:
	case r.Stays != "":
		text := fmt.Sprintf("remove %d objects of the instance from namespace %q, which stays because %s", r.Objects, r.Namespace, r.Stays)
		if !r.Holds.None() {
			text += "; with it stays " + r.Holds.String()
		}
		what = append(what, text)
	default:
		what = append(what, fmt.Sprintf("delete namespace %q and everything in it", r.Namespace))
	}
	subject := fmt.Sprintf("instance %q", r.Instance)
	if r.All {
		subject += " and the operator"
		text := "delete the operator and its kinds, and with them the Sandboxes and Repos of every Instance on the cluster"
		if len(r.Others) > 0 {
			others := make([]string, len(r.Others))
			for i, other := range r.Others {
				others[i] = fmt.Sprintf("%q in namespace %q", other.Instance, other.Namespace)
			}
			text += ": also of " + strings.Join(others, ", ")
		}
		if !r.Strays.None() {
			text += "; also those in namespaces of no Instance: " + r.Strays.String()
		}
		what = append(what, text)
	}
	return fmt.Sprintf("remove %s from context %s (%s)?", subject, r.Context, strings.Join(what, "; "))
}

// An UnconfirmedError says that a removal needs an answer and nobody was there to ask.
type UnconfirmedError struct{ Removal }

func (e *UnconfirmedError) Error() string {
	return e.text() + " — not a tty; pass --yes to proceed non-interactively"
}

// A NotDeployedError says that the Instance is not there, so that nothing was deleted.
type NotDeployedError struct {
	Instance, Context, Namespace string
	// Unlabelled says that the namespace exists and is no Instance's.
	Unlabelled bool
}

func (e *NotDeployedError) Error() string {
	why := "it does not exist"
	if e.Unlabelled {
		why = "it belongs to no Instance"
	}
	return fmt.Sprintf("instance %q is not deployed here: namespace %q on %s — %s. Nothing was deleted.", e.Instance, e.Namespace, e.Context, why)
}

// A HeldError says that something was deleted and is still there after the timeout. Err names what holds it.
type HeldError struct {
	Object string
	Err    error
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%v. Remove what holds it, then run it again to complete what was begun", e.Err)
}

func (e *HeldError) Unwrap() error { return e.Err }
