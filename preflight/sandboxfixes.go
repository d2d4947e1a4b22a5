package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"

	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/quota"
)

// raiseFull is the command that gives the quotas among the limits room for one more pod, beside what is used; empty where they count nothing. words are
// those of a quota that nobody could read.
func raiseFull(namespace string, limits []placement.Limit, words string) string {
	wanted := map[string]corev1.ResourceList{}
	for _, limit := range limits {
		if limit.On != placement.OnQuota || limit.Each == nil || limit.Used == nil {
			continue
		}
		need := limit.Used.DeepCopy()
		need.Add(*limit.Each)
		if wanted[limit.Name] == nil {
			wanted[limit.Name] = corev1.ResourceList{}
		}
		wanted[limit.Name][limit.Resource] = need
	}
	if len(wanted) == 0 {
		return RaiseQuota(namespace, words)
	}
	var commands []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		commands = append(commands, patchQuota(namespace, name, wanted[name]))
	}
	return strings.Join(commands, " && ")
}

// ofSize says whether a smaller Size takes less of a resource, by the name that a quota gives it.
func ofSize(name corev1.ResourceName) bool {
	_, of, found := strings.Cut(string(name), ".")
	if !found {
		of = string(name)
	}
	return of == "memory" || of == "cpu"
}

// smallerHelps says whether quotas limit nothing that a smaller Size would not take less of.
func smallerHelps(limits []placement.Limit, words string) bool {
	for _, limit := range limits {
		if limit.On == placement.OnQuota && limit.Resource != "" && !ofSize(limit.Resource) {
			return false
		}
	}
	refused, _ := quota.ParseRefusal(words)
	for name := range refused.Requested {
		if !ofSize(name) {
			return false
		}
	}
	return true
}

// widenBounds is the command that lets the bounds of LimitRanges take all of the pods; empty where they do already, or where no other bound would help,
// such as for a ratio.
func widenBounds(namespace string, pods []*corev1.Pod, facts placement.Facts) string {
	admitted := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		admitted[i], _ = facts.Admit(pod)
	}
	var commands []string
	for i := range facts.LimitRanges {
		limitRange := &facts.LimitRanges[i]
		if limitRange.Namespace != namespace {
			continue
		}
		var patches []string
		for n := range limitRange.Spec.Limits {
			patches = append(patches, widened(n, &limitRange.Spec.Limits[n], admitted)...)
		}
		if len(patches) > 0 {
			commands = append(commands, fmt.Sprintf("kubectl -n %s patch limitrange %s --type json -p '[%s]'", namespace, limitRange.Name, strings.Join(patches, ",")))
		}
	}
	return strings.Join(commands, " && ")
}

// widened are the changes of one item of a LimitRange, at its place in the list.
func widened(at int, item *corev1.LimitRangeItem, pods []*corev1.Pod) []string {
	asked := asksOf(item.Type, pods)
	var patches []string
	bound := func(field string, of corev1.ResourceList, beyond func(asked, bound resource.Quantity) bool) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			most := of[name]
			for _, amounts := range asked {
				if amount, ok := amounts[name]; ok && beyond(amount, most) {
					most = amount
				}
			}
			if was := of[name]; most.Cmp(was) != 0 {
				path := strings.ReplaceAll(strings.ReplaceAll(string(name), "~", "~0"), "/", "~1")
				patches = append(patches, fmt.Sprintf(`{"op":"replace","path":"/spec/limits/%d/%s/%s","value":%q}`, at, field, path, most.String()))
			}
		}
	}
	bound("max", item.Max, func(asked, bound resource.Quantity) bool { return asked.Cmp(bound) > 0 })
	bound("min", item.Min, func(asked, bound resource.Quantity) bool { return asked.Cmp(bound) < 0 })
	return patches
}

// asksOf are the requests and limits that items of a type bound.
func asksOf(of corev1.LimitType, pods []*corev1.Pod) []corev1.ResourceList {
	var asked []corev1.ResourceList
	for _, pod := range pods {
		switch of {
		case corev1.LimitTypeContainer:
			for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
				asked = append(asked, c.Resources.Requests, c.Resources.Limits)
			}
		case corev1.LimitTypePod:
			options := podresources.PodResourcesOptions{ExcludeOverhead: true}
			asked = append(asked, podresources.PodRequests(pod, options), podresources.PodLimits(pod, options))
		}
	}
	return asked
}
