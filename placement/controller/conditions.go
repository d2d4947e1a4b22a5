package controller

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/v1alpha1"
)

// A writer writes conditions into a status.
type writer struct {
	status     *v1alpha1.SandboxStatus
	generation int64
	now        time.Time
}

// set writes a condition; its transition time moves with its status only.
func (w writer) set(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return setCondition(&w.status.Conditions, w.generation, w.now, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

func setCondition(conditions *[]metav1.Condition, generation int64, now time.Time, c metav1.Condition) metav1.Condition {
	c.Message = shortened(c.Message)
	c.ObservedGeneration = generation
	c.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(conditions, c)
	return c
}

// What an API server takes in a condition (metav1.Condition).
const maxMessage = 32768

var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// shortened cuts what would be refused; the length counts characters.
func shortened(message string) string {
	message = strings.ToValidUTF8(message, "�")
	if len(message) <= maxMessage {
		return message
	}
	runes := []rune(message)
	return string(runes[:min(len(runes), maxMessage)])
}

// reasonOr is a reason that somebody else gave, if a condition can carry it.
func reasonOr(reason, fallback string) string {
	if len(reason) <= 1024 && conditionReason.MatchString(reason) {
		return reason
	}
	return fallback
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func podReady(pod *corev1.Pod) bool {
	ready := podCondition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// unscheduledMessage is the scheduler's. It says nothing of a pod that a gate holds, so the gates are named: who set them can be found.
func unscheduledMessage(pod *corev1.Pod, said *corev1.PodCondition) string {
	gates := placement.Gates(pod)
	if len(gates) == 0 {
		return said.Message
	}
	return strings.TrimPrefix(said.Message+": gate ", ": ") + strings.Join(gates, ", gate ")
}

func notReadyMessage(pod *corev1.Pod) string {
	switch ready := podCondition(pod, corev1.PodReady); {
	case pod.Spec.NodeName == "":
		return "the scheduler has not placed the pod"
	case ready == nil || ready.Message == "" && ready.Reason == "":
		return "the pod has not started"
	case ready.Message == "":
		return ready.Reason
	default:
		return ready.Message
	}
}
