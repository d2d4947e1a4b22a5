package provision

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"jr2.dev/jr2/placement/v1alpha1"
)

// A State is where a Workspace stands: the states of its Machine that have to do with the Sandbox.
type State string

const (
	// Placing: the Sandbox is written, or about to be, and its pod has no node.
	Placing State = "placing"
	// Provisioning: the pod has a node and is not Ready.
	Provisioning State = "provisioning"
	Ready        State = "ready"
	// Lost: the pod is gone or has ended, and no second one is made.
	Lost State = "lost"
	// Ending: the Sandbox is being deleted.
	Ending State = "ending"
)

// StateOf tells where a Sandbox stands by what the operator has published.
func StateOf(sandbox *v1alpha1.Sandbox) State {
	is := func(condition string) bool { return meta.IsStatusConditionTrue(sandbox.Status.Conditions, condition) }
	switch {
	case sandbox.DeletionTimestamp != nil || sandbox.Status.Phase == v1alpha1.SandboxTerminating:
		return Ending
	case sandbox.Status.Phase == v1alpha1.SandboxLost || is(v1alpha1.ConditionLost):
		return Lost
	case is(v1alpha1.ConditionReady):
		return Ready
	case is(v1alpha1.ConditionScheduled) || sandbox.Status.Node != "":
		return Provisioning
	}
	return Placing
}

// ran says that the pod was given a node once. What ran is never deleted by this package on its own.
func ran(sandbox *v1alpha1.Sandbox) bool {
	return sandbox.Status.Node != "" || meta.IsStatusConditionTrue(sandbox.Status.Conditions, v1alpha1.ConditionScheduled)
}

// unready is why a placed Sandbox is not Ready, in the operator's words.
func unready(sandbox *v1alpha1.Sandbox) (reason, message string) {
	if ready := meta.FindStatusCondition(sandbox.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		reason, message = ready.Reason, ready.Message
	}
	if waiting := sandbox.Status.Waiting; len(waiting) > 0 && (reason == "" || reason == v1alpha1.ReasonPodNotReady) {
		reason, message = waiting[0].Reason, waiting[0].Container+": "+orElse(waiting[0].Message, waiting[0].Reason)
	}
	return reason, message
}

// repoHeld says that the pod is Ready and waits for a repository on its node.
func repoHeld(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonRepoMissing, v1alpha1.ReasonRepoPending, v1alpha1.ReasonRepoCloneFailed}, reason)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// lossOf is why a Sandbox is lost, in the operator's words.
func lossOf(box *v1alpha1.Sandbox) (reason, message string) {
	if lost := meta.FindStatusCondition(box.Status.Conditions, v1alpha1.ConditionLost); lost != nil {
		return lost.Reason, lost.Message
	}
	return "", ""
}

func joined(reason, message string) string {
	if reason != "" && message != "" {
		return reason + ": " + message
	}
	return reason + message
}
