package apply

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	podresources "k8s.io/component-helpers/resource"
)

// deadlock finds a rollout that waits for itself: a new pod needs room that old pods of the same Deployment take, and these stay until the
// new one is available. It is certain only when the quota has no room for both even if everybody else left it.
func (s *scene) deadlock(o *unstructured.Unstructured, text string) *Diagnosis {
	q, ok := parseQuota(text)
	if !ok || o.GetKind() != "Deployment" {
		return nil
	}
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		return nil
	}
	fix := fmt.Sprintf("set maxSurge to 0 and maxUnavailable to 1, or raise the quota %s", q.Quota)
	if _, counts := q.Requested[setsCounted]; counts {
		fix = "raise it"
	} else if !keepsAllPods(d) {
		return nil
	}
	for name, requested := range q.Requested {
		own := s.use(d, string(name))
		if own.IsZero() {
			continue
		}
		both := own.DeepCopy()
		both.Add(requested)
		if limited := q.Limited[name]; both.Cmp(limited) > 0 {
			return &Diagnosis{DiagnosedDeadlock, fmt.Sprintf("quota deadlock: what is new needs %s %s, what is old of the same Deployment takes %s of the %s that %s allows, and goes only when the new is available: %s.",
				name, requested.String(), own.String(), limited.String(), q.Quota, fix)}
		}
	}
	return nil
}

// setsCounted is the resource of a quota that counts ReplicaSets. Old ones stay for a rollback.
const setsCounted = "count/replicasets.apps"

// keepsAllPods says that a rollout takes no old pod away before a new one is available.
func keepsAllPods(d appsv1.Deployment) bool {
	r := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || r == nil || r.MaxUnavailable == nil || r.MaxSurge == nil {
		return false
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, int(replicas(d.Spec.Replicas)), false)
	surge, err2 := intstr.GetScaledValueFromIntOrPercent(r.MaxSurge, int(replicas(d.Spec.Replicas)), true)
	return err == nil && err2 == nil && unavailable == 0 && surge > 0
}

// use is what a Deployment's older pods, or its ReplicaSets, take of a quota's resource. Pods that end still count until they are gone,
// but they go.
func (s *scene) use(d appsv1.Deployment, name string) resource.Quantity {
	var sum resource.Quantity
	for _, set := range s.sets {
		if !hasController(set, d.UID) {
			continue
		}
		if name == setsCounted {
			sum.Add(resource.MustParse("1"))
		}
		if set.Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
			continue
		}
		for _, p := range s.podsOf(set.UID) {
			if p.DeletionTimestamp == nil {
				sum.Add(useOf(p, name))
			}
		}
	}
	return sum
}

// useOf is what one pod takes of a quota's resource; zero for one that is not known here.
func useOf(p *corev1.Pod, name string) resource.Quantity {
	if name == "pods" || name == "count/pods" {
		return resource.MustParse("1")
	}
	if limit, ok := strings.CutPrefix(name, "limits."); ok {
		return podresources.PodLimits(p, podresources.PodResourcesOptions{})[corev1.ResourceName(limit)]
	}
	return podresources.PodRequests(p, podresources.PodResourcesOptions{})[corev1.ResourceName(strings.TrimPrefix(name, "requests."))]
}
