package apply

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// A refusal is a pod that could not be made, as its maker told it last.
type refusal struct {
	class  Class
	text   string
	object string    // "ReplicaSet web-5d4f"
	at     time.Time // when the server last said so; zero when only a condition is left of it
	since  time.Time // when it first said so; zero when nothing tells
	never  *Diagnosis
}

// refusal finds the refusal that stands for an object: no pod was made since. A ReplicaSet has a condition that says so; for the others
// there are only events, and the pods that came later.
func (s *scene) refusal(o *unstructured.Unstructured, maker types.UID) *refusal {
	if o.GetKind() == "Deployment" && s.currentSet(o) == nil {
		return setRefusal(o)
	}
	last := s.lastRefusal(maker)
	for _, set := range s.sets {
		if set.UID != maker {
			continue
		}
		text := replicaFailure(set)
		switch {
		case text == "":
			return nil
		case last == nil:
			return newRefusal(text, "ReplicaSet "+set.Name, time.Time{})
		}
		return last
	}
	if last == nil {
		return nil
	}
	for _, p := range s.podsOf(maker) {
		if !p.CreationTimestamp.Time.Before(last.at) {
			return nil
		}
	}
	return last
}

func (s *scene) lastRefusal(maker types.UID) *refusal {
	var last *corev1.Event
	for _, e := range s.refusals {
		if e.InvolvedObject.UID == maker && (last == nil || timeOf(*last).Before(timeOf(*e))) {
			last = e
		}
	}
	if last == nil {
		return nil
	}
	r := newRefusal(last.Message, last.InvolvedObject.Kind+" "+last.InvolvedObject.Name, timeOf(*last))
	r.since = last.FirstTimestamp.Time
	return r
}

func newRefusal(text, object string, at time.Time) *refusal {
	return &refusal{class: classOfRefusal(text), text: text, object: object, at: at}
}

// classOfRefusal adds to the table a default or a maximum of a LimitRange that contradicts the pod: no change of others lets it in.
func classOfRefusal(text string) Class {
	if limitRange.MatchString(text) {
		return ClassInvalid
	}
	return classifyRefusal(text)
}

// setRefusal reads why a Deployment could not make its ReplicaSet: a quota that counts them.
func setRefusal(deployment *unstructured.Unstructured) *refusal {
	c := conditionsOf(deployment)[string(appsv1.DeploymentProgressing)]
	if c == nil || c.status != "False" || c.reason != "ReplicaSetCreateError" {
		return nil
	}
	return newRefusal(c.message, "Deployment "+deployment.GetName(), time.Time{})
}

// judgeRefusal says whether nothing but a change of the set or of the cluster's rules lets the pods in. Only what the server said during
// this wait counts for that, because the rules may have changed since it said it before.
func (w *waiter) judgeRefusal(it *waitItem, s *scene, now time.Time) (why string, final bool) {
	r := it.refused
	why = "its pods are refused: " + r.text
	switch r.class {
	case ClassQuotaNever, ClassQuotaUnspecified, ClassPodSecurity, ClassPriorityClass, ClassInvalid:
		it.doubted = time.Time{}
		return why, !r.at.Before(w.begun.Truncate(time.Second))
	case ClassQuotaWait:
		it.doubted = time.Time{}
		if r.never = s.deadlock(it.obj, r.text); r.never != nil {
			return fmt.Sprintf("its rollout is in a deadlock with a quota: %s", r.text), true
		}
	case ClassServiceAccount, ClassDenied:
		if it.doubted.IsZero() {
			it.doubted = now
		}
		end := it.doubted.Add(w.opts.Grace)
		if now.Before(end) {
			it.again = earliest(it.again, end)
			return "", false
		}
		return why, !r.at.Before(w.begun.Truncate(time.Second))
	default:
		it.doubted = time.Time{}
	}
	return "", false
}
