package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
)

// quotaUse is what one pod takes of quotas, by their resource names. (k8s.io/kubernetes, pkg/quota/v1/evaluator/core/pods.go)
func quotaUse(pod *corev1.Pod) corev1.ResourceList {
	use := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1"), "count/pods": resource.MustParse("1")}
	for name, quantity := range Requests(pod) {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			use[name] = quantity
		}
		use["requests."+name] = quantity
	}
	limits := podresources.PodLimits(pod, podresources.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if quantity, ok := limits[name]; ok {
			use["limits."+name] = quantity
		}
	}
	return use
}

// quotaLimits are the bounds that a quota sets to this pod and to the objects that come with each; none when its scopes leave the pod out.
func quotaLimits(quota *corev1.ResourceQuota, pod *corev1.Pod, objects corev1.ResourceList) []Limit {
	use := QuotaUse(quota, pod)
	if len(scopesOf(quota)) == 0 { // scopes select pods alone
		use = withMissing(use, objects)
	}
	hard := quota.Status.Hard
	counted := true
	if len(hard) == 0 {
		hard, counted = quota.Spec.Hard, false
	}
	if matches(quota, pod) {
		if unstated := unstated(pod, hard); len(unstated) > 0 {
			return []Limit{{On: OnQuota, Name: quota.Name, Resource: unstated[0], Never: true,
				Text: fmt.Sprintf("quota %s: wants every container to state %s", quota.Name, joined(unstated))}}
		}
	}
	var limits []Limit
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		each, takes := use[name]
		if !takes || each.IsZero() {
			continue
		}
		most, used := hard[name], quota.Status.Used[name]
		limit := Limit{On: OnQuota, Name: quota.Name, Resource: name, Each: &each, Used: &used, Hard: &most,
			Text: fmt.Sprintf("quota %s: %s %s used of %s, %s each", quota.Name, name, used.String(), most.String(), each.String())}
		if _, ok := quota.Status.Used[name]; !ok || !counted {
			limit.Text = fmt.Sprintf("quota %s: nobody has counted yet what is used of %s", quota.Name, name)
			limits = append(limits, limit)
			continue
		}
		limit.More = divide(most, used, each)
		limit.Never = each.Cmp(most) > 0
		limits = append(limits, limit)
	}
	return limits
}

// divide is how many times each goes into what is left.
func divide(most, used, each resource.Quantity) int64 {
	left := most.DeepCopy()
	left.Sub(used)
	if left.Sign() <= 0 {
		return 0
	}
	if left.Value() <= resource.MaxMilliValue && each.Value() <= resource.MaxMilliValue {
		return left.MilliValue() / each.MilliValue()
	}
	return left.Value() / each.Value()
}

func scopesOf(quota *corev1.ResourceQuota) []corev1.ScopedResourceSelectorRequirement {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, scope := range quota.Spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if quota.Spec.ScopeSelector != nil {
		scopes = append(scopes, quota.Spec.ScopeSelector.MatchExpressions...)
	}
	return scopes
}

// matches says whether a quota counts the pod: all its scopes must select it. One that Kubernetes does not know for pods selects none.
func matches(quota *corev1.ResourceQuota, pod *corev1.Pod) bool {
	for _, scope := range scopesOf(quota) {
		if !inScope(scope, pod) {
			return false
		}
	}
	return true
}

func inScope(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	terminating := pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return inPriority(scope, pod.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod.Spec.Affinity)
	}
	return false
}

func inPriority(scope corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch scope.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(scope.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return class == "" || !slices.Contains(scope.Values, class)
	}
	return false
}

// bestEffort says whether nothing of the pod states cpu or memory; the pod's own resources, if it has any, stand for the containers'.
func bestEffort(pod *corev1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	}
	if pod.Spec.Resources != nil {
		return !states(pod.Spec.Resources.Requests) && !states(pod.Spec.Resources.Limits)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if states(c.Resources.Requests) || states(c.Resources.Limits) {
			return false
		}
	}
	return true
}

func states(list corev1.ResourceList) bool {
	cpu, memory := list[corev1.ResourceCPU], list[corev1.ResourceMemory]
	return cpu.Sign() > 0 || memory.Sign() > 0
}

func crossesNamespaces(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	weighted := func(all []corev1.WeightedPodAffinityTerm) {
		for _, w := range all {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	if affinity.PodAffinity != nil {
		terms = append(terms, affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity.PodAntiAffinity != nil {
		terms = append(terms, affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}

// unstated are the resources that a quota on cpu or memory wants stated and some container does not state. Pod-level resources state enough.
func unstated(pod *corev1.Pod, hard corev1.ResourceList) []corev1.ResourceName {
	if podresources.IsPodLevelResourcesSet(pod) {
		return nil
	}
	var names []corev1.ResourceName
	for _, name := range []corev1.ResourceName{"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"} {
		if _, ok := hard[name]; !ok {
			continue
		}
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			list, of := c.Resources.Requests, strings.TrimPrefix(string(name), "requests.")
			if limited, ok := strings.CutPrefix(of, "limits."); ok {
				list, of = c.Resources.Limits, limited
			}
			if _, ok := list[corev1.ResourceName(of)]; !ok {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

func joined(names []corev1.ResourceName) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// SandboxObjects are the objects beside the pod that a Sandbox brings with it, as count quotas count them: the Sandbox itself, the Service of its
// name, and the Secret of its token.
func SandboxObjects() corev1.ResourceList {
	one := resource.MustParse("1")
	return corev1.ResourceList{
		"count/sandboxes.core.jr2.dev": one,
		corev1.ResourceServices:        one, "count/services": one,
		corev1.ResourceSecrets: one, "count/secrets": one,
	}
}

// QuotaUse is what a pod, as Facts.Admit gives it, takes of a quota, by the quota's resource names; nothing when the quota's scopes leave it out.
func QuotaUse(quota *corev1.ResourceQuota, pod *corev1.Pod) corev1.ResourceList {
	if !matches(quota, pod) {
		return corev1.ResourceList{}
	}
	return quotaUse(pod)
}
