package jr2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/holder"
	"jr2.dev/jr2/preflight"
)

// lockHeld tells another converge of this Instance, which a converge would wait for. A Lease that ran out, or whose holder is known to be gone, is
// nobody's. Whether this user may read it is the affair of the check of all rights.
func (k *checking) lockHeld(ctx context.Context) error {
	lease, err := k.cluster.client.CoordinationV1().Leases(k.cluster.namespace).Get(ctx, lockName, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if apierrors.IsNotFound(err) {
		k.locked.looked = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the lock %s/%s: %w", k.cluster.namespace, lockName, err)
	}
	k.locked = seenLock{looked: true, lease: lease}
	who, since, held := apply.LockHolder(lease)
	if !held || holder.Gone(who) {
		return nil
	}
	k.note(preflight.Finding{
		Severity: preflight.Note, Code: preflight.CodeLockHeld, Object: "Lease " + k.cluster.namespace + "/" + lockName,
		Message: fmt.Sprintf("%s converges this Instance since %s: a converge would wait for its end, and what was looked at may move", who, since.UTC().Format(time.RFC3339)),
	})
	return nil
}

// leaving warns of objects that are being deleted and that somebody's finalizers keep: a converge waits for their end before it makes them anew.
func (k *checking) leaving(context.Context) error {
	for _, layer := range k.plan.Layers {
		for _, step := range layer.Plan.Steps {
			if len(step.Finalizers) == 0 {
				continue
			}
			fix := onObject("get", step.Ref) + " -o yaml"
			k.note(preflight.Finding{
				Severity: preflight.Warn, Code: preflight.CodeObjectTerminating, Object: step.Ref.String(), Fix: fix,
				Message: fmt.Sprintf("%s is being deleted and kept by %s: a converge waits until it is gone — see that those who keep it come to their end: %s",
					step.Ref, strings.Join(step.Finalizers, ", "), fix),
			})
		}
	}
	return nil
}

// spareRunning makes warnings of what refuses the pods of workloads that a converge leaves as they are and that run: it meets no refusal, and
// only a pod that has to be made again does.
func (k *checking) spareRunning(ctx context.Context, findings []preflight.Finding, objs []*unstructured.Unstructured) []preflight.Finding {
	for i, f := range findings {
		if f.Severity != preflight.Refuse {
			continue
		}
		spared := slices.ContainsFunc(objs, func(o *unstructured.Unstructured) bool {
			return f.Object == fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()) && k.stays(o) && k.runs(ctx, o)
		})
		if !spared {
			continue
		}
		message := strings.TrimSuffix(strings.TrimPrefix(f.Message, "refusing: "), " Nothing was applied.")
		findings[i].Severity = preflight.Warn
		findings[i].Message = message + " Its pods run, so a converge goes on; a pod that is lost is not made again."
	}
	return findings
}

// stays says that a converge would not write an object.
func (k *checking) stays(o *unstructured.Unstructured) bool {
	step, ok := k.planned(apply.RefOf(o))
	return ok && step.Intent == apply.WillLeave
}

// planned is what the plan says of an object, whichever layer it is in.
func (k *checking) planned(ref apply.Ref) (apply.Step, bool) {
	for _, layer := range k.plan.Layers {
		if step, ok := layer.Plan.Step(ref); ok {
			return step, true
		}
	}
	return apply.Step{}, false
}

// runs says that all pods that a workload is to have are there and available. One that can't be read is none.
func (k *checking) runs(ctx context.Context, o *unstructured.Unstructured) bool {
	apps, name := k.cluster.client.AppsV1(), o.GetName()
	switch o.GetKind() {
	case "Deployment":
		live, err := apps.Deployments(o.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
		return err == nil && live.Status.ObservedGeneration >= live.Generation && live.Status.Replicas > 0 && live.Status.UnavailableReplicas == 0
	case "StatefulSet":
		live, err := apps.StatefulSets(o.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
		return err == nil && live.Status.ObservedGeneration >= live.Generation && live.Status.Replicas > 0 && live.Status.AvailableReplicas == live.Status.Replicas
	case "DaemonSet":
		live, err := apps.DaemonSets(o.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
		return err == nil && live.Status.ObservedGeneration >= live.Generation && live.Status.NumberAvailable > 0 && live.Status.NumberAvailable >= live.Status.DesiredNumberScheduled
	}
	return false
}
