package warm

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
)

// IsPlaceholder says of a pod that it is a placeholder, of this Instance or another.
func IsPlaceholder(pod *corev1.Pod) bool { return pod.Labels[Label] == LabelPlaceholder }

// GivesWayTo says which pods go when a Sandbox of this priority class comes: placeholders below its value, and none when it preempts nobody. It is
// the ExplainOptions.GivesWay and the RoomOptions.GivesWay of such a Sandbox. For a class that nobody knows, nil: nothing goes.
func GivesWayTo(class *schedulingv1.PriorityClass) func(*corev1.Pod) bool {
	if class == nil || class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever {
		return nil
	}
	value := class.Value
	return func(pod *corev1.Pod) bool {
		return IsPlaceholder(pod) && pod.Spec.Priority != nil && *pod.Spec.Priority < value
	}
}

// Held is what placeholders do at the moment.
type Held struct {
	// Nodes are held open, in the order of the pods.
	Nodes []string `json:"nodes"`
	// Waiting placeholders have no node yet: one gave way, and the autoscaler has not booted a node for it.
	Waiting []Waiting `json:"waiting,omitempty"`
}

// Waiting is a placeholder without a node.
type Waiting struct {
	Pod string `json:"pod"`
	// Reason in the scheduler's words, or the gate that holds the pod; "" when nobody has spoken. A pod that waits for its gate is to be left
	// alone: made again it would lose its place in the queue.
	Reason string `json:"reason,omitempty"`
	// Since when.
	Since metav1.Time `json:"since"`
}

// Standing says which nodes the placeholders among these pods hold. Pods that have ended or are going hold none.
func Standing(pods []corev1.Pod) Held {
	held := Held{Nodes: []string{}}
	for i := range pods {
		pod := &pods[i]
		switch {
		case !IsPlaceholder(pod) || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case pod.Spec.NodeName != "":
			held.Nodes = append(held.Nodes, pod.Spec.NodeName)
		default:
			held.Waiting = append(held.Waiting, waiting(pod))
		}
	}
	return held
}

func waiting(pod *corev1.Pod) Waiting {
	w := Waiting{Pod: pod.Name, Since: pod.CreationTimestamp}
	if gates := placement.Gates(pod); len(gates) > 0 {
		w.Reason = "gate " + strings.Join(gates, ", ")
		return w
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			w.Reason, w.Since = condition.Message, condition.LastTransitionTime
		}
	}
	return w
}
