package placement

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
)

// fillIn writes what the API server's defaults write into a pod's resources: a limit that is stated alone is a request too, and pod-level
// limits without requests take those of the containers or, if none states one, the limits. (k8s.io/kubernetes, pkg/apis/core/v1/defaults.go)
func fillIn(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = withMissing(resources.Requests, resources.Limits)
		}
	}
	if spec.Resources == nil || len(spec.Resources.Limits) == 0 {
		return
	}
	missing := corev1.ResourceList{}
	for name, limit := range spec.Resources.Limits {
		if podresources.IsSupportedPodLevelResource(name) {
			missing[name] = limit
		}
	}
	contained := podresources.AggregateContainerRequests(&corev1.Pod{Spec: *spec}, podresources.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if request, ok := contained[name]; ok {
			missing[name] = request
		}
	}
	spec.Resources.Requests = withMissing(spec.Resources.Requests, missing)
}

// withMissing returns the list with what only the other has. The list itself may be changed.
func withMissing(list, other corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range other {
		if _, ok := list[name]; ok {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = quantity.DeepCopy()
	}
	return list
}

// Admit returns the pod as the API server would store it, as far as placement goes: resource defaults, the defaults of LimitRanges of its
// namespace, the default priority class, the overhead, node selector and tolerations of its RuntimeClass, and the tolerations of nodes that have
// stopped answering, which every pod gets. The pod given is not changed. With it come the reasons for which the pod would be refused whatever room there is: a LimitRange's bounds and defaults, or a RuntimeClass
// that nobody has.
func (f *Facts) Admit(pod *corev1.Pod) (*corev1.Pod, []Limit) {
	pod = pod.DeepCopy()
	fillIn(&pod.Spec)
	for i := range f.LimitRanges {
		if f.LimitRanges[i].Namespace == pod.Namespace {
			addDefaults(&pod.Spec, &f.LimitRanges[i])
		}
	}
	refused := f.overDefaults(pod)
	for i := range f.LimitRanges {
		if f.LimitRanges[i].Namespace == pod.Namespace {
			refused = append(refused, outOfBounds(pod, &f.LimitRanges[i])...)
		}
	}
	if pod.Spec.PriorityClassName == "" {
		pod.Spec.PriorityClassName = f.defaultPriority()
	}
	refused = append(refused, f.addRuntimeClass(&pod.Spec)...)
	addTolerations(&pod.Spec)
	return pod, refused
}

// addTolerations writes that the pod stays for a while on a node that has become not ready or unreachable, where it does not say for how long.
// (k8s.io/kubernetes, plugin/pkg/admission/defaulttolerationseconds, on by default) Such nodes have a taint NoSchedule too, which decides for who
// does not tolerate that one.
func addTolerations(spec *corev1.PodSpec) {
	given, wait := spec.Tolerations, int64(300)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(given, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &wait})
		}
	}
}

func (f *Facts) defaultPriority() string {
	name, value := "", int32(0)
	for _, class := range f.PriorityClasses {
		if class.GlobalDefault && (name == "" || class.Value < value) {
			name, value = class.Name, class.Value
		}
	}
	return name
}

// addDefaults writes the defaults of a LimitRange into each container that does not state its own.
func addDefaults(spec *corev1.PodSpec, limitRange *corev1.LimitRange) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for _, item := range limitRange.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, item.DefaultRequest)
			maps.Copy(limits, item.Default)
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = withMissing(resources.Requests, requests)
			resources.Limits = withMissing(resources.Limits, limits)
		}
	}
}

// overDefaults are the default limits that are less than what a container requests: the API server lets in no such container. A pod that states
// both itself is not judged.
func (f *Facts) overDefaults(pod *corev1.Pod) []Limit {
	var broken []Limit
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			if request.Cmp(limit) <= 0 {
				continue
			}
			at := slices.IndexFunc(f.LimitRanges, func(l corev1.LimitRange) bool { return l.Namespace == pod.Namespace && defaults(&l, name, limit) })
			if at >= 0 {
				broken = append(broken, Limit{On: OnLimitRange, Name: f.LimitRanges[at].Name, Resource: name, Never: true,
					Text: fmt.Sprintf("limit range %s: %s of container %s is %s, and the limit of who states none is %s", f.LimitRanges[at].Name, name, c.Name, request.String(), limit.String())})
			}
		}
	}
	return broken
}

// defaults says whether a LimitRange gives containers this limit.
func defaults(limitRange *corev1.LimitRange, name corev1.ResourceName, limit resource.Quantity) bool {
	return slices.ContainsFunc(limitRange.Spec.Limits, func(item corev1.LimitRangeItem) bool {
		given, ok := item.Default[name]
		return ok && item.Type == corev1.LimitTypeContainer && given.Cmp(limit) == 0
	})
}

// addRuntimeClass writes what admission writes. The pod's own overhead stays: it was admitted before.
func (f *Facts) addRuntimeClass(spec *corev1.PodSpec) []Limit {
	if spec.RuntimeClassName == nil || *spec.RuntimeClassName == "" || f.RuntimeClasses == nil {
		return nil
	}
	for i := range f.RuntimeClasses {
		class := &f.RuntimeClasses[i]
		if class.Name != *spec.RuntimeClassName {
			continue
		}
		if class.Overhead != nil && spec.Overhead == nil {
			spec.Overhead = class.Overhead.PodFixed.DeepCopy()
		}
		if class.Scheduling != nil {
			if len(class.Scheduling.NodeSelector) > 0 && spec.NodeSelector == nil {
				spec.NodeSelector = map[string]string{}
			}
			maps.Copy(spec.NodeSelector, class.Scheduling.NodeSelector)
			spec.Tolerations = append(spec.Tolerations, class.Scheduling.Tolerations...)
		}
		return nil
	}
	return []Limit{{On: OnRuntimeClass, Name: *spec.RuntimeClassName, Never: true, Text: "the RuntimeClass " + *spec.RuntimeClassName + " does not exist"}}
}

// TinyOverhead says that a RuntimeClass's memory overhead is below one mebibyte, which is a number without its unit: no runtime sandbox runs in
// so little.
func TinyOverhead(overhead corev1.ResourceList) bool {
	memory, ok := overhead[corev1.ResourceMemory]
	return ok && memory.Sign() > 0 && memory.Cmp(*resource.NewQuantity(1<<20, resource.BinarySI)) < 0
}
