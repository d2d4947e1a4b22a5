package jr2

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/provision"
)

// RunOptions say which Workflow's Workspaces to provision and where. Workflow is required; the rest of the zero RunOptions is the Instance of
// the folder around the working directory in the kubeconfig's current context, and a wait for room without a deadline.
type RunOptions struct {
	// Workflow is the name of one of the Instance's Workflows.
	Workflow string
	// ID of the run, a label value; a new one when empty. The same id goes on with no earlier run: each Run makes Sandboxes of its own.
	ID string

	// Instance, Dir, Env, Outermost and Isolate say which Instance, as in Options.
	Instance  *config.Instance
	Dir       string
	Env       map[string]string
	Outermost string
	Isolate   []string
	// Config, Kubeconfig, Context and Namespace choose the cluster and the namespace, as in Options.
	Config     *rest.Config
	Kubeconfig string
	Context    string
	Namespace  string

	// Repos are the urls of Repo Slots that the Workflow binds per run, by slot. One for any other of its slots wins over what the code binds.
	Repos map[string]string
	// Bundle refuses Workspaces on images that an administrator turned off, as in Options.
	Bundle images.Bundle
	// Sizes, PlacingDeadline and Refuse are those of provision.Options: what is too large to ask for, how long to wait for a node, and what
	// not to wait for.
	Sizes           placement.SizeRange
	PlacingDeadline time.Duration
	Refuse          func(provision.Wait) bool
	// Hold keeps the Sandboxes in use until ctx ends, which is no error then, or one of them is lost. They are deleted afterwards.
	Hold bool

	// Events receives what happens, one call at a time; nil discards.
	Events func(Event)
}

// What a run came to.
const (
	RunReady = "ready" // all Sandboxes are Ready; nobody keeps their leases any more
	RunEnded = "ended" // they were held and are deleted
	RunError = "error"
)

// RunResult is what a run came to.
type RunResult struct {
	ID        string `json:"runId"`
	Workflow  string `json:"workflow"`
	Instance  string `json:"instance"`
	Context   string `json:"context"`
	Namespace string `json:"namespace"`
	// Status is RunReady, RunEnded or RunError; Error is why, Code "sandbox_lost" where a Sandbox is lost.
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	Code   string `json:"code,omitempty"`
	// Workspaces are the Sandboxes as last seen; those that were deleted because they never ran are not among them.
	Workspaces []provision.Workspace `json:"workspaces"`
}

// An UnknownWorkflowError says that the Instance has no Workflow of the name.
type UnknownWorkflowError struct {
	Workflow string
	// Known are the names of those that it has.
	Known []string
}

func (e *UnknownWorkflowError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no workflow is called %q: the Instance has none", e.Workflow)
	}
	return fmt.Sprintf("no workflow is called %q — workflows: %s", e.Workflow, strings.Join(e.Known, ", "))
}

// An UnknownSlotError says that no Workspace of the Workflow has the Repo Slot that a url was given for.
type UnknownSlotError struct {
	Workflow, Slot string
	// Known are the slots that it has, each once, sorted.
	Known []string
}

func (e *UnknownSlotError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("a url was given for Repo Slot %q, and workflow %q has no Workspace with repositories — leave it out", e.Slot, e.Workflow)
	}
	return fmt.Sprintf("a url was given for Repo Slot %q, which workflow %q does not have — slots: %s", e.Slot, e.Workflow, strings.Join(e.Known, ", "))
}

// A NotConvergedError says that a namespace does not hold the Instance, or not what a run needs of it.
type NotConvergedError struct{ Instance, Context, Namespace, Why string }

func (e *NotConvergedError) Error() string {
	return fmt.Sprintf("instance %q is not converged into namespace %q on %s: %s — bring it there with `jr2 up` first", e.Instance, e.Namespace, e.Context, e.Why)
}
