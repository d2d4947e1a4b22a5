package apply

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Status is how far an object's rollout is.
type Status struct {
	Done bool
	// Failed says that the rollout gave up at FailedAt. It may be left from an earlier one: see RolloutOptions.Grace.
	Failed bool
	// FailedAt is also set, without Failed, while the status is about an older generation that failed.
	FailedAt time.Time
	// Message is what is waited for, or that it is complete, in the words of kubectl rollout status.
	Message string
	// Note is what a person should know about a rollout that is done: "staged, needs pod deletion".
	Note string
	// On is what nobody but the cluster can give: a node, or room in a quota. Message then holds the cluster's own words.
	On WaitsOn
}

// WaitsOn is what an object waits for that this engine does not control. Such a wait is no failure.
type WaitsOn string

const (
	OnNode  WaitsOn = "node"
	OnQuota WaitsOn = "quota"
)

// Ready reads the rollout of a Deployment, StatefulSet or DaemonSet from its status, without any request, by the definitions of
// kubectl rollout status. It differs where those can never come true: a StatefulSet or DaemonSet that is updated OnDelete is done when
// its old pods are ready, and a partition that covers all replicas is done at once. Other kinds are done as soon as they exist.
func Ready(obj runtime.Object) Status {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return readyDeployment(o)
	case *appsv1.StatefulSet:
		return readyStatefulSet(o)
	case *appsv1.DaemonSet:
		return readyDaemonSet(o)
	case runtime.Unstructured:
		return readyUnstructured(o)
	}
	return Status{Done: true, Message: "exists"}
}

func readyUnstructured(o runtime.Unstructured) Status {
	gvk := o.GetObjectKind().GroupVersionKind()
	var into runtime.Object
	switch {
	case gvk.Group == appsv1.GroupName && gvk.Kind == "Deployment":
		into = &appsv1.Deployment{}
	case gvk.Group == appsv1.GroupName && gvk.Kind == "StatefulSet":
		into = &appsv1.StatefulSet{}
	case gvk.Group == appsv1.GroupName && gvk.Kind == "DaemonSet":
		into = &appsv1.DaemonSet{}
	default:
		return Status{Done: true, Message: "exists"}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.UnstructuredContent(), into); err != nil {
		return Status{Message: "its status does not read: " + err.Error()}
	}
	return Ready(into)
}

func waiting(format string, args ...any) Status { return Status{Message: fmt.Sprintf(format, args...)} }

// replicas is the number asked for; the server's default is 1.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// progressDeadlineExceeded is the reason that the Deployment controller gives when it stops waiting for progress.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

func readyDeployment(d *appsv1.Deployment) Status {
	want, s := replicas(d.Spec.Replicas), d.Status
	var status Status
	switch {
	case d.Generation > s.ObservedGeneration:
		status = waiting("waiting for the update of deployment %q to be observed", d.Name)
	case s.UpdatedReplicas < want:
		status = waiting("%d out of %d new replicas of deployment %q have been updated", s.UpdatedReplicas, want, d.Name)
	case s.Replicas > s.UpdatedReplicas:
		status = waiting("%d old replicas of deployment %q are pending termination", s.Replicas-s.UpdatedReplicas, d.Name)
	case s.AvailableReplicas < s.UpdatedReplicas:
		status = waiting("%d of %d updated replicas of deployment %q are available", s.AvailableReplicas, s.UpdatedReplicas, d.Name)
	default:
		status = Status{Done: true, Message: fmt.Sprintf("deployment %q successfully rolled out", d.Name)}
	}
	if d.Spec.Paused && !status.Done {
		status.Message += " (it is paused)"
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && !status.Done && d.Generation <= s.ObservedGeneration {
			status.Message += ": " + c.Message
		}
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == progressDeadlineExceeded && !status.Done {
			status.FailedAt = c.LastUpdateTime.Time
			if d.Generation > s.ObservedGeneration {
				continue
			}
			status.Failed = true
			status.Message = fmt.Sprintf("deployment %q exceeded its progress deadline", d.Name)
			if c.Message != "" {
				status.Message += ": " + c.Message
			}
		}
	}
	return status
}

func readyStatefulSet(s *appsv1.StatefulSet) Status {
	want, at := replicas(s.Spec.Replicas), s.Status
	if at.ObservedGeneration == 0 || s.Generation > at.ObservedGeneration {
		return waiting("waiting for the update of statefulset %q to be observed", s.Name)
	}
	if at.ReadyReplicas < want {
		return waiting("%d of %d pods of statefulset %q are ready", at.ReadyReplicas, want, s.Name)
	}
	if s.Spec.MinReadySeconds > 0 && at.AvailableReplicas < want {
		return waiting("%d of %d pods of statefulset %q are available", at.AvailableReplicas, want, s.Name)
	}
	done := Status{Done: true, Message: fmt.Sprintf("statefulset %q rolled out: %d pods at revision %s", s.Name, at.UpdatedReplicas, at.UpdateRevision)}
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		if at.UpdatedReplicas < want && at.CurrentRevision != at.UpdateRevision {
			done.Note = stagedNote
		}
		return done
	}
	var partition int32
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		partition = *r.Partition
	}
	if updated := max(0, want-partition); at.UpdatedReplicas < updated {
		return waiting("%d out of %d new pods of statefulset %q have been updated", at.UpdatedReplicas, updated, s.Name)
	}
	if partition > 0 && at.CurrentRevision != at.UpdateRevision {
		done.Note = fmt.Sprintf("partitioned: pods below ordinal %d keep their revision", partition)
	}
	return done
}

const stagedNote = "staged, needs pod deletion"

func readyDaemonSet(d *appsv1.DaemonSet) Status {
	s := d.Status
	if d.Generation > s.ObservedGeneration {
		return waiting("waiting for the update of daemon set %q to be observed", d.Name)
	}
	onDelete := d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	if s.UpdatedNumberScheduled < s.DesiredNumberScheduled && !onDelete {
		return waiting("%d out of %d new pods of daemon set %q have been updated", s.UpdatedNumberScheduled, s.DesiredNumberScheduled, d.Name)
	}
	if s.NumberAvailable < s.DesiredNumberScheduled {
		return waiting("%d of %d updated pods of daemon set %q are available", s.NumberAvailable, s.DesiredNumberScheduled, d.Name)
	}
	done := Status{Done: true, Message: fmt.Sprintf("daemon set %q successfully rolled out", d.Name)}
	if s.UpdatedNumberScheduled < s.DesiredNumberScheduled {
		done.Note = stagedNote
	}
	return done
}
