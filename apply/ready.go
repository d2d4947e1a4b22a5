package apply

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Status is how far an object's rollout is.
type Status struct {
	Done bool
	// Failed says that it gave up at FailedAt. It may be left from an earlier rollout: see RolloutOptions.Grace. Without a FailedAt it
	// is final and counts at once.
	Failed bool
	// FailedAt is also set, without Failed, while the status is about an older generation that failed.
	FailedAt time.Time
	// Message is what is waited for, or that it is complete, in the words of kubectl rollout status.
	Message string
	// Note is what a person should know about a rollout that is done: "staged, needs pod deletion".
	Note string
	// On is what nobody but the cluster can give: a node, room in a quota, or the end of a gate. Message then holds the cluster's own
	// words. Ready alone sees it for a Pod and a suspended Job; WaitReady looks at the pods and events of others.
	On WaitsOn
}

// WaitsOn is what an object waits for that this engine does not control. Such a wait is no failure.
type WaitsOn string

const (
	OnNode  WaitsOn = "node"
	OnQuota WaitsOn = "quota"
	// OnGate is a queue or a person that holds pods back: a scheduling gate, or the suspension of a Job.
	OnGate WaitsOn = "gate"
)

// Ready reads from an object's status whether it is ready, without any request.
//
// Deployment, StatefulSet and DaemonSet go by the definitions of kubectl rollout status, but where those can never come true: a
// StatefulSet or DaemonSet that is updated OnDelete is done when its old pods are ready, a partition that covers all replicas is done at
// once, and a DaemonSet without a node is done. A ReplicaSet is done when its pods are available. A Job is done when it is Complete and
// failed when it is Failed; a suspended one is done with a note, unless it is a hook or in a queue: those wait OnGate. A Pod is done when
// it is Ready or Succeeded, and a hook Pod that ends by its restart policy only when it Succeeded. A PersistentVolumeClaim is done when it
// is Bound (WaitReady knows more of classes that bind late); a Service of type LoadBalancer when it has an address, any other at once; an
// Ingress at once, because without a controller it never gets an address; a CronJob at once; a Namespace while it is Active; a
// CustomResourceDefinition when it is Established; an APIService when it is Available.
//
// Everything else, custom resources first of all, goes by the field's conventions: a status.observedGeneration that is behind the
// generation waits; the condition Stalled fails and Reconciling waits; the condition Ready, or else Available, decides; without them, or
// without a status, the object is done as soon as it exists. A condition with an observedGeneration of its own that is behind says nothing.
//
// An object that is being deleted failed. Typed objects of other kinds than those of the groups apps, batch and core need their TypeMeta.
func Ready(obj runtime.Object) Status {
	status, ends := read(obj)
	m, err := meta.Accessor(obj)
	switch {
	case err != nil || m.GetDeletionTimestamp() == nil || ends && (status.Done || status.Failed):
		return status
	case ends:
		return Status{Failed: true, Message: removedText}
	}
	return Status{Failed: true, Message: "it is being deleted"}
}

// read returns the status, and whether the object ends by itself, so that its end counts even while it is being deleted.
func read(obj runtime.Object) (status Status, ends bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return readyDeployment(o), false
	case *appsv1.StatefulSet:
		return readyStatefulSet(o), false
	case *appsv1.DaemonSet:
		return readyDaemonSet(o), false
	case *appsv1.ReplicaSet:
		return readyReplicaSet(o), false
	case *batchv1.Job:
		return readyJob(o), true
	case *corev1.Pod:
		return readyPod(o), true
	case *corev1.PersistentVolumeClaim:
		return readyClaim(o), false
	case *corev1.Service:
		return readyService(o), false
	case *corev1.Namespace:
		return readyNamespace(o), false
	case *unstructured.Unstructured:
		return readUnstructured(o)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return Status{Message: "its status does not read: " + err.Error()}, false
	}
	return readUnstructured(&unstructured.Unstructured{Object: content})
}

func readUnstructured(o *unstructured.Unstructured) (status Status, ends bool) {
	var into runtime.Object
	switch gk := o.GroupVersionKind().GroupKind(); gk.String() {
	case "Deployment.apps":
		into = &appsv1.Deployment{}
	case "StatefulSet.apps":
		into = &appsv1.StatefulSet{}
	case "DaemonSet.apps":
		into = &appsv1.DaemonSet{}
	case "ReplicaSet.apps":
		into = &appsv1.ReplicaSet{}
	case "Job.batch":
		into = &batchv1.Job{}
	case "Pod":
		into = &corev1.Pod{}
	case "PersistentVolumeClaim":
		into = &corev1.PersistentVolumeClaim{}
	case "Service":
		into = &corev1.Service{}
	case "Namespace":
		into = &corev1.Namespace{}
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return readyDefinition(o), false
	case "APIService.apiregistration.k8s.io":
		return readyAPIService(o), false
	case "HorizontalPodAutoscaler.autoscaling":
		return readyAutoscaler(o), false
	default:
		if readyAtOnce(gk) {
			return exists(), false
		}
		return readyCustom(o), false
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return Status{Message: "its status does not read: " + err.Error()}, false
	}
	return read(into)
}

func exists() Status { return Status{Done: true, Message: "exists"} }

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
