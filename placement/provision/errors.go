package provision

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// CodeLost is the code of a LostError (source: kora, "Size sandboxes").
const CodeLost = "sandbox_lost"

// Why a Sandbox is lost. They match a *LostError by errors.Is.
var (
	// ErrPlacingDeadline: the caller's own deadline for Placing ended the wait.
	ErrPlacingDeadline = errors.New("no node within the deadline")
	// ErrDeleted: somebody else deleted the Sandbox, or is deleting it.
	ErrDeleted = errors.New("the Sandbox was deleted")
	// ErrPodLost: the operator says that the pod is gone or has ended.
	ErrPodLost = errors.New("the pod is lost")
	// ErrRefused: Options.Refuse did not want to wait for what is in the way.
	ErrRefused = errors.New("there is no room")
	// ErrInvalid: the API server finds the pod wrong, so that no wait helps.
	ErrInvalid = errors.New("the API server takes no such pod")
)

// A LostError says that there is no Sandbox, or none any more. It matches one of the causes above by errors.Is.
type LostError struct {
	Sandbox, Child string
	// Cause is one of ErrPlacingDeadline, ErrDeleted, ErrPodLost, ErrRefused, ErrInvalid.
	Cause error
	// Reason is the operator's for a lost pod.
	Reason string
	// Wait is the last reason for which it had no node; nil when it had one, or nobody said why not.
	Wait *Wait
	// After is how long it was in Placing.
	After time.Duration
}

// Code is CodeLost.
func (e *LostError) Code() string { return CodeLost }

func (e *LostError) Error() string {
	text := fmt.Sprintf("%s: %s: %v", CodeLost, e.Sandbox, e.Cause)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Cause == ErrPlacingDeadline {
		text += " of " + seconds(e.After)
	}
	if e.Wait == nil {
		return text
	}
	return fmt.Sprintf("%s — it waited for %s: %s", text, e.Wait.What(), e.Wait.Message)
}

func (e *LostError) Unwrap() error { return e.Cause }

// What is what the wait is for, in words.
func (w Wait) What() string {
	switch w.On {
	case OnQuota:
		return "quota"
	case OnPod:
		return "the API server to take its pod"
	case OnGate:
		return "what gates it"
	}
	return "a node"
}

// A NotReadyError says that a placed pod did not become Ready in time. The Sandbox stays, to be looked at, until its idle timeout.
type NotReadyError struct {
	Sandbox, Child, Node string
	// Budget is what was given, counted from placement.
	Budget time.Duration
	// Reason and Message are the operator's, or the kubelet's about the first container that waits.
	Reason, Message string
}

func (e *NotReadyError) Error() string {
	text := fmt.Sprintf("%s is not Ready %s after it was placed on %s", e.Sandbox, seconds(e.Budget), e.Node)
	for _, part := range []string{e.Reason, e.Message} {
		if part != "" {
			text += ": " + part
		}
	}
	return text + " — it stays until its idle timeout"
}

// An UndeletedError says that a provision ended for Err, and that what never ran could not be deleted then. It goes with its idle timeout.
type UndeletedError struct {
	Err error
	// Cleanup is why not.
	Cleanup error
}

func (e *UndeletedError) Error() string {
	return fmt.Sprintf("%v (and what never ran could not be deleted, so it goes with its idle timeout: %v)", e.Err, e.Cleanup)
}

func (e *UndeletedError) Unwrap() []error { return []error{e.Err, e.Cleanup} }

// An ExistsError says that an object of this name is there and is not this Workspace's.
type ExistsError struct{ Kind, Namespace, Name string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s %s/%s exists and belongs to something else", e.Kind, e.Namespace, e.Name)
}

// An UnknownRunError says that no run has this id or prefix, or several have.
type UnknownRunError struct {
	ID, Namespace string
	// Matches are the ids of the runs that begin with ID, when there are several.
	Matches []string
}

func (e *UnknownRunError) Error() string {
	if len(e.Matches) > 0 {
		return fmt.Sprintf("%d runs in namespace %q begin with %q — give more of the id: %s", len(e.Matches), e.Namespace, e.ID, strings.Join(e.Matches, ", "))
	}
	return fmt.Sprintf("no run in namespace %q has an id that begins with %q", e.Namespace, e.ID)
}

// A SlotError says that a Repo Slot has no url: it is bound per run, and the run gave none.
type SlotError struct{ Workflow, Slot string }

func (e *SlotError) Error() string {
	return fmt.Sprintf("workflow %q binds Repo Slot %q per run, and no url was given for it", e.Workflow, e.Slot)
}

// A RequestError says what is wrong with a Request or a Composition before anything is written.
type RequestError struct{ Problem string }

func (e *RequestError) Error() string { return "refusing: " + e.Problem }

// seconds prints a duration in whole seconds.
func seconds(d time.Duration) string { return d.Round(time.Second).String() }
