package apply

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readyAtOnce says that objects of a kind are done as soon as they exist, so that nobody needs to look at them: they have no status, or
// none that says more.
func readyAtOnce(gk schema.GroupKind) bool {
	switch gk.Group {
	case "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io",
		"networking.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io":
		return true
	case "":
		switch gk.Kind {
		case "ConfigMap", "Secret", "ServiceAccount", "Endpoints", "LimitRange", "ResourceQuota", "Event", "PodTemplate", "PersistentVolume":
			return true
		}
	case "batch":
		return gk.Kind == "CronJob"
	case "apps":
		return gk.Kind == "ControllerRevision"
	}
	return false
}

func readyReplicaSet(r *appsv1.ReplicaSet) Status {
	want, s := replicas(r.Spec.Replicas), r.Status
	if r.Generation > s.ObservedGeneration {
		return waiting("waiting for the update of replicaset %q to be observed", r.Name)
	}
	if s.Replicas > want {
		return waiting("%d pods of replicaset %q are to go", s.Replicas-want, r.Name)
	}
	if s.AvailableReplicas >= want {
		return Status{Done: true, Message: fmt.Sprintf("replicaset %q has %d available pods", r.Name, s.AvailableReplicas)}
	}
	status := waiting("%d of %d pods of replicaset %q are available", s.AvailableReplicas, want, r.Name)
	if message := replicaFailure(r); message != "" {
		status.Message += ": " + message
	}
	return status
}

// replicaFailure is why a ReplicaSet could not make a pod when it last tried; it takes the condition away when it made one.
func replicaFailure(r *appsv1.ReplicaSet) string {
	for _, c := range r.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// kueueQueue is the label by which a Job goes into a queue of Kueue, which suspends it until its quota has room.
const kueueQueue = "kueue.x-k8s.io/queue-name"

// readyJob goes by the Job's own conditions: counts of pods say nothing about its end. SuccessCriteriaMet and FailureTarget come first,
// while pods are still being ended, and the work is over with Complete and Failed.
func readyJob(j *batchv1.Job) Status {
	var coming string
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return Status{Done: true, Message: fmt.Sprintf("job %q is complete", j.Name)}
		case batchv1.JobFailed:
			return Status{Failed: true, Message: fmt.Sprintf("job %q failed: %s", j.Name, because(c.Reason, c.Message))}
		case batchv1.JobFailureTarget:
			coming = fmt.Sprintf("job %q is failing, its pods end: %s", j.Name, because(c.Reason, c.Message))
		case batchv1.JobSuccessCriteriaMet:
			coming = fmt.Sprintf("job %q met its success criteria, its pods end", j.Name)
		}
	}
	if coming != "" {
		return Status{Message: coming}
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend {
		return suspendedJob(j)
	}
	want := int32(1)
	if j.Spec.Completions != nil {
		want = *j.Spec.Completions
	}
	status := waiting("%d of %d pods of job %q succeeded", j.Status.Succeeded, want, j.Name)
	if j.Status.Failed > 0 {
		status.Message += fmt.Sprintf(", %d failed", j.Status.Failed)
	}
	return status
}

// suspendedJob does not hold up others when it is one that a person starts by hand. A hook must have run before what comes after it, and
// a queue starts its Jobs by itself.
func suspendedJob(j *batchv1.Job) Status {
	text := fmt.Sprintf("job %q is suspended", j.Name)
	queue := j.Labels[kueueQueue]
	switch {
	case queue != "":
		return Status{Message: text + " until the queue " + queue + " lets it start", On: OnGate}
	case j.Annotations[HookAnnotation] != "":
		return Status{Message: text + " and runs when it is resumed", On: OnGate}
	}
	return Status{Done: true, Message: text, Note: "suspended: it runs when it is resumed"}
}

// because joins a reason and a message, either of which may be missing.
func because(reason, message string) string {
	return strings.TrimSuffix(strings.TrimPrefix(reason+": "+strings.TrimSpace(message), ": "), ": ")
}

func readyPod(p *corev1.Pod) Status {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return Status{Done: true, Message: fmt.Sprintf("pod %q succeeded", p.Name)}
	case corev1.PodFailed:
		return Status{Failed: true, Message: strings.TrimSuffix(fmt.Sprintf("pod %q failed: %s", p.Name, podEnd(p)), ": ")}
	}
	if on, words, _ := podHeld(p); on != "" {
		return Status{Message: words, On: on}
	}
	if p.Annotations[HookAnnotation] != "" && p.Spec.RestartPolicy != corev1.RestartPolicyAlways && p.Spec.RestartPolicy != "" {
		return waiting("pod %q has not ended: %s", p.Name, p.Status.Phase)
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return Status{Done: true, Message: fmt.Sprintf("pod %q is ready", p.Name)}
		case c.Type == corev1.PodReady:
			return waiting("pod %q is not ready: %s", p.Name, because(c.Reason, c.Message))
		}
	}
	return waiting("pod %q is not ready: %s", p.Name, p.Status.Phase)
}

// missingVolume is in the scheduler's words when no node would help: the claim is not there, or has no volume.
var missingVolume = regexp.MustCompile(`persistentvolumeclaim "[^"]+" not found|unbound immediate PersistentVolumeClaims`)

// podHeld says what keeps a pod from a node, and since when: the scheduler's own words, or the gates that it waits at.
func podHeld(p *corev1.Pod) (WaitsOn, string, time.Time) {
	if p.Spec.NodeName != "" || p.Status.Phase != corev1.PodPending {
		return "", "", time.Time{}
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse:
		case c.Reason == corev1.PodReasonSchedulingGated:
			var gates []string
			for _, g := range p.Spec.SchedulingGates {
				gates = append(gates, "gate "+g.Name)
			}
			return OnGate, strings.Join(gates, ", "), c.LastTransitionTime.Time
		case c.Reason == corev1.PodReasonUnschedulable && !missingVolume.MatchString(c.Message):
			return OnNode, c.Message, c.LastTransitionTime.Time
		}
	}
	return "", "", time.Time{}
}

// podEnd says how a pod failed: in its own words, or by the exit of a container.
func podEnd(p *corev1.Pod) string {
	if text := because(p.Status.Reason, p.Status.Message); text != "" {
		return text
	}
	for _, c := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("container %s: %s", c.Name, exitOf(t))
		}
	}
	return ""
}

func readyClaim(c *corev1.PersistentVolumeClaim) Status {
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return Status{Done: true, Message: fmt.Sprintf("claim %q is bound to %s", c.Name, c.Spec.VolumeName)}
	case corev1.ClaimLost:
		return Status{Failed: true, Message: fmt.Sprintf("claim %q lost its volume %s", c.Name, c.Spec.VolumeName)}
	}
	return waiting("claim %q is not bound to a volume", c.Name)
}

func readyService(s *corev1.Service) Status {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || len(s.Spec.ExternalIPs) > 0 {
		return exists()
	}
	for _, at := range s.Status.LoadBalancer.Ingress {
		return Status{Done: true, Message: fmt.Sprintf("service %q has the address %s%s", s.Name, at.IP, at.Hostname)}
	}
	return waiting("service %q has no address from a load balancer", s.Name)
}

func readyNamespace(n *corev1.Namespace) Status {
	if n.Status.Phase != corev1.NamespaceTerminating {
		return exists()
	}
	status := Status{Failed: true, Message: fmt.Sprintf("namespace %q is being deleted", n.Name)}
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			status.Message += ": " + c.Message
		}
	}
	return status
}
