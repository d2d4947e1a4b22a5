package placement

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
)

// What a Limit is on.
const (
	OnNode         = "node"
	OnQuota        = "quota"
	OnLimitRange   = "limitRange"
	OnRuntimeClass = "runtimeClass"
)

// A Limit is one thing that bounds how many more pods there can be.
type Limit struct {
	// On is OnNode, OnQuota, OnLimitRange or OnRuntimeClass.
	On string `json:"on"`
	// Name of the object; "" for the nodes together.
	Name string `json:"name,omitempty"`
	// Resource by the quota's or LimitRange's own name, such as "limits.memory".
	Resource corev1.ResourceName `json:"resource,omitempty"`
	// Each is what one more takes of a quota, of which Used is taken and Hard allowed in all.
	Each *resource.Quantity `json:"each,omitempty"`
	Used *resource.Quantity `json:"used,omitempty"`
	Hard *resource.Quantity `json:"hard,omitempty"`
	// More is how many more this limit alone lets in.
	More int64 `json:"more"`
	// Never says that one more gets in only when somebody changes the pod, the limit or the nodes; else room comes when others go.
	Never bool `json:"never,omitempty"`
	// Text is a clause: "quota team-quota: limits.memory 6Gi used of 8Gi, 2Gi each".
	Text string `json:"text"`
}

// outOfBounds are the bounds of a LimitRange that the pod breaks, as its admission reckons: per container, init containers too, and for the pod
// as a whole, without overhead.
func outOfBounds(pod *corev1.Pod, limitRange *corev1.LimitRange) []Limit {
	var broken []Limit
	add := func(what string, item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) {
		for _, text := range bounds(item, requests, limits) {
			broken = append(broken, Limit{On: OnLimitRange, Name: limitRange.Name, Resource: text.name, Never: true,
				Text: fmt.Sprintf("limit range %s: %s of %s %s", limitRange.Name, text.name, what, text.words)})
		}
	}
	for i := range limitRange.Spec.Limits {
		item := &limitRange.Spec.Limits[i]
		switch item.Type {
		case corev1.LimitTypeContainer:
			for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
				add("container "+c.Name, item, c.Resources.Requests, c.Resources.Limits)
			}
		case corev1.LimitTypePod:
			options := podresources.PodResourcesOptions{ExcludeOverhead: true}
			add("the pod", item, podresources.PodRequests(pod, options), podresources.PodLimits(pod, options))
		}
	}
	return broken
}

type bound struct {
	name  corev1.ResourceName
	words string
}

func bounds(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) []bound {
	var broken []bound
	say := func(name corev1.ResourceName, format string, args ...any) {
		broken = append(broken, bound{name, fmt.Sprintf(format, args...)})
	}
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		request, requested := requests[name]
		limit, limited := limits[name]
		switch {
		case !requested:
			say(name, "has no request, and at least %s is wanted", least.String())
		case request.Cmp(least) < 0:
			say(name, "is %s, and at least %s is wanted", request.String(), least.String())
		case limited && limit.Cmp(least) < 0:
			say(name, "is limited to %s, and at least %s is wanted", limit.String(), least.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		request := requests[name]
		limit, limited := limits[name]
		switch {
		case !limited:
			say(name, "has no limit, and at most %s is allowed", most.String())
		case limit.Cmp(most) > 0:
			say(name, "is %s, and at most %s is allowed", limit.String(), most.String())
		case request.Cmp(most) > 0:
			say(name, "is %s, and at most %s is allowed", request.String(), most.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		most, request, limit := item.MaxLimitRequestRatio[name], requests[name], limits[name]
		switch {
		case request.IsZero() || limit.IsZero():
			say(name, "needs a request and a limit, whose ratio may be at most %s", most.String())
		case limit.AsApproximateFloat64() > most.AsApproximateFloat64()*request.AsApproximateFloat64():
			say(name, "has the limit %s and the request %s, and at most %s times the request is allowed", limit.String(), request.String(), most.String())
		}
	}
	return broken
}
