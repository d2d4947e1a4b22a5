package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement/v1alpha1"
)

// An observation is all that the next status of a Sandbox is made of.
type observation struct {
	// box has the status that was written last.
	box *v1alpha1.Sandbox
	// pod is the Sandbox's own; nil when there is none.
	pod *corev1.Pod
	// service says that the Sandbox's own Service is there.
	service bool
	// refusal is why there is no pod, or no Service; nil when nothing refuses.
	refusal *refusal
	// repos are those of the spec, by key. One that does not exist is absent.
	repos map[string]*v1alpha1.Repo
	// nodeAway says that the node of the pod is gone, or that nobody hears of it.
	nodeAway bool
	now      time.Time
}

// leaving begins the message of Ready while the pod goes; what follows is why.
const leaving = "the pod is being deleted"

// nextStatus is what the status should be. What an observation says nothing of stays as it was.
func nextStatus(o observation) v1alpha1.SandboxStatus {
	s := o.box.Status.DeepCopy()
	s.Endpoint = Endpoint(o.box)
	if o.service {
		s.ServiceRef = &v1alpha1.Reference{Name: o.box.Name}
	}
	w := writer{status: s, generation: o.box.Generation, now: o.now}
	switch {
	case o.box.DeletionTimestamp != nil:
		s.Phase = v1alpha1.SandboxTerminating
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPodNotReady, "the Sandbox is being deleted")
	case isLost(s):
		s.Phase = v1alpha1.SandboxLost
	case o.pod != nil:
		w.pod(o)
	case s.PodUID != "":
		w.lose(goneReason(o), goneMessage(s))
	case o.refusal != nil:
		s.Phase = v1alpha1.SandboxPending
		w.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, o.refusal.reason, o.refusal.message)
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, o.refusal.reason, o.refusal.message)
	default:
		s.Phase = v1alpha1.SandboxPending
	}
	return *s
}

// pod says what the pod says.
func (w writer) pod(o observation) {
	s, pod := w.status, o.pod
	s.PodRef, s.PodUID, s.Node = &v1alpha1.Reference{Name: pod.Name}, pod.UID, pod.Spec.NodeName
	if harness := harnessOf(pod); harness != nil {
		s.Harness = harness
	}
	s.Waiting = waitingOf(pod)
	s.Repos = repoStatuses(o)
	scheduled := w.scheduled(pod)
	if reason, message := lossOf(pod, o.nodeAway); reason != "" {
		w.lose(reason, message)
		return
	}
	s.Phase = v1alpha1.SandboxPending
	switch {
	case pod.DeletionTimestamp != nil:
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPodNotReady, leavingMessage(pod))
	case o.refusal != nil: // of the Service: the pod is there
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, o.refusal.reason, o.refusal.message)
	case scheduled.Status == metav1.ConditionFalse:
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, scheduled.Reason, scheduled.Message)
	case !podReady(pod):
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPodNotReady, notReadyMessage(pod))
	case w.gate(o):
		s.Phase = v1alpha1.SandboxReady
		w.set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPodReady, "")
	}
}

// scheduled writes the condition Scheduled: what the scheduler said, in its words.
func (w writer) scheduled(pod *corev1.Pod) metav1.Condition {
	said := podCondition(pod, corev1.PodScheduled)
	switch {
	case pod.Spec.NodeName != "":
		return w.set(v1alpha1.ConditionScheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "")
	case said != nil && said.Status == corev1.ConditionFalse:
		return w.set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, reasonOr(said.Reason, v1alpha1.ReasonUnschedulable), unscheduledMessage(pod, said))
	}
	return w.set(v1alpha1.ConditionScheduled, metav1.ConditionUnknown, v1alpha1.ReasonSchedulingPending, "the scheduler has not spoken")
}

// gate says whether all repositories of a ready pod are there. It is passed once in the life of the pod: ReposFresh remembers.
func (w writer) gate(o observation) bool {
	if len(o.box.Spec.Repos) == 0 || meta.FindStatusCondition(w.status.Conditions, v1alpha1.ConditionReposFresh) != nil {
		return true
	}
	held, stale := repoGate(o)
	if held != nil {
		w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, held.reason, held.message)
		return false
	}
	if stale != "" {
		w.set(v1alpha1.ConditionReposFresh, metav1.ConditionFalse, v1alpha1.ReasonFetchFailed, stale)
	} else {
		w.set(v1alpha1.ConditionReposFresh, metav1.ConditionTrue, v1alpha1.ReasonFetched, "")
	}
	return true
}

// lose ends the Sandbox. What is known of its pod stays in the status; nothing waits any more.
func (w writer) lose(reason, message string) {
	w.status.Phase = v1alpha1.SandboxLost
	w.status.Waiting = nil
	w.set(v1alpha1.ConditionLost, metav1.ConditionTrue, reason, message)
	w.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
}

func isLost(s *v1alpha1.SandboxStatus) bool {
	return s.Phase == v1alpha1.SandboxLost || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionLost)
}
