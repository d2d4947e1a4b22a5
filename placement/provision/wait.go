package provision

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement/quota"
	"jr2.dev/jr2/placement/v1alpha1"
)

// What a Sandbox in Placing waits for.
const (
	OnNode  = "node"
	OnQuota = "quota"
	// OnPod: the API server does not take the pod, for a reason that is no quota's: admission, rights, a webhook, a name that is taken.
	OnPod = "pod"
	// OnGate: a scheduling gate holds the pod, for example until a queueing system has room. No node is in the way, and no quota.
	OnGate = "gate"
)

// An Outlook says whether waiting can help.
type Outlook string

const (
	// NotYet: room comes when others go, when nodes come, or when somebody raises the quota.
	NotYet Outlook = "not yet"
	// Never: the Sandbox asks for more than the quota allows in total, or does not state what the quota wants stated, or its pod is wrong.
	// Only a change of the quota or of the Sandbox helps.
	Never Outlook = "never"
)

// A Wait is why a Sandbox has no node.
type Wait struct {
	// On is OnNode, OnQuota, OnPod or OnGate.
	On string `json:"on"`
	// Message is in the scheduler's words, or in the quota's as the API server says them, unchanged.
	Message string `json:"message"`
	// Since is when the cluster began to say so. It moves when On does.
	Since time.Time `json:"since"`
	// Outlook is NotYet for a node: a cluster may grow. It is Never for a pod that the API server finds wrong.
	Outlook Outlook `json:"outlook"`
	// Quota is what the message says of a quota, by resource: requested, used, limited. Nil for a node, and for words that nobody can read.
	Quota *quota.Refusal `json:"-"`
}

// WaitOf is what a Sandbox in Placing waits for. False when it is not in Placing, and as long as nobody has said why it has no node.
func WaitOf(sandbox *v1alpha1.Sandbox) (Wait, bool) {
	if StateOf(sandbox) != Placing {
		return Wait{}, false
	}
	scheduled := meta.FindStatusCondition(sandbox.Status.Conditions, v1alpha1.ConditionScheduled)
	if scheduled == nil || scheduled.Status != metav1.ConditionFalse {
		return Wait{}, false
	}
	message := orElse(scheduled.Message, scheduled.Reason)
	wait := Wait{On: OnNode, Message: message, Since: scheduled.LastTransitionTime.Time, Outlook: NotYet}
	switch scheduled.Reason {
	case v1alpha1.ReasonQuotaExceeded:
		return quotaWait(message, wait.Since), true
	case v1alpha1.ReasonPodInvalid:
		wait.On, wait.Outlook = OnPod, Never
	case v1alpha1.ReasonPodRefused, v1alpha1.ReasonNameTaken:
		wait.On = OnPod
	case corev1.PodReasonSchedulingGated:
		wait.On = OnGate
	}
	return wait, true
}

func quotaWait(message string, since time.Time) Wait {
	wait := Wait{On: OnQuota, Message: message, Since: since, Outlook: NotYet}
	if refusal, ok := quota.ParseRefusal(message); ok {
		wait.Quota = &refusal
		if refusal.Never() {
			wait.Outlook = Never
		}
	}
	return wait
}
