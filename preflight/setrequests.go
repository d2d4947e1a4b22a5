package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"
)

// requestsOf is what a pod asks of a node, by the scheduler's own rule: native sidecars count beside what runs after them, the overhead of
// the RuntimeClass is on top, and requests of the pod as a whole stand for those of its containers.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

// withDefaults fills in what the API server would: a limit alone is a request too.
func withDefaults(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].Resources.Requests = limitsAsRequests(list[i].Resources.Requests, list[i].Resources.Limits)
		}
	}
	if spec.Resources == nil {
		return
	}
	limits := corev1.ResourceList{}
	for name, limit := range spec.Resources.Limits {
		if !requestedByContainers(spec, name) { // else the sum of the containers is the request
			limits[name] = limit
		}
	}
	spec.Resources.Requests = limitsAsRequests(spec.Resources.Requests, limits)
}

func limitsAsRequests(requests, limits corev1.ResourceList) corev1.ResourceList {
	all := maps.Clone(requests)
	for name, limit := range limits {
		if _, ok := all[name]; ok {
			continue
		}
		if all == nil {
			all = corev1.ResourceList{}
		}
		all[name] = limit
	}
	return all
}

func requestedByContainers(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if _, ok := c.Resources.Requests[name]; ok {
			return true
		}
	}
	return false
}

// landingPod is the pod as the scheduler will see it: what the API server made of it when it was asked, else the template with what
// is known to be filled in.
func (l *setLook) landingPod(w *workload) *corev1.Pod {
	pod := l.filledIn(w)
	if w.kind == "DaemonSet" {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations(pod)...)
	}
	return pod
}

func (l *setLook) filledIn(w *workload) *corev1.Pod {
	if w.admitted == nil {
		pod := w.pod.DeepCopy()
		withDefaults(&pod.Spec)
		addRuntimeClass(&pod.Spec, l.runtimeClass(pod.Spec.RuntimeClassName))
		return pod
	}
	pod := w.admitted.DeepCopy()
	// The API server lets every pod stay on a lost node for five minutes. That says how long a pod stays there, and would read as if one
	// should be placed there.
	pod.Spec.Tolerations = slices.DeleteFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds != nil && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
	})
	if w.pod.Spec.RuntimeClassName != nil && pod.Spec.RuntimeClassName == nil { // it was made without one that arrives with the set
		addRuntimeClass(&pod.Spec, l.runtimeClass(w.pod.Spec.RuntimeClassName))
	}
	return pod
}

// runtimeClass is the RuntimeClass of this name, of the set or of the cluster; nil when neither is known to have it.
func (l *setLook) runtimeClass(name *string) *nodev1.RuntimeClass {
	if name == nil {
		return nil
	}
	if o := l.find("node.k8s.io", "RuntimeClass", "", *name); o != nil {
		class := &nodev1.RuntimeClass{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, class) == nil {
			return class
		}
	}
	return l.facts.RuntimeClasses[*name]
}

// addRuntimeClass adds what the API server's RuntimeClass admission adds.
func addRuntimeClass(spec *corev1.PodSpec, class *nodev1.RuntimeClass) {
	if class == nil {
		return
	}
	if class.Overhead != nil && spec.Overhead == nil {
		spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return
	}
	if len(class.Scheduling.NodeSelector) > 0 && spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	maps.Copy(spec.NodeSelector, class.Scheduling.NodeSelector)
	spec.Tolerations = append(spec.Tolerations, class.Scheduling.Tolerations...)
}

// runtimeClasses finds RuntimeClasses that pods name and nobody has, and those whose overhead cannot be meant.
func (l *setLook) runtimeClasses() []Finding {
	var findings []Finding
	var unknown []string
	told := map[string]bool{}
	for _, w := range l.workloads {
		name := w.pod.Spec.RuntimeClassName
		if name == nil || *name == "" {
			continue
		}
		class := l.runtimeClass(name)
		switch {
		case class == nil && l.facts.RuntimeClasses == nil && w.admitted == nil:
			unknown = append(unknown, *name)
		case class == nil && l.facts.RuntimeClasses != nil:
			findings = append(findings, Finding{
				Severity: Warn, Code: CodeRuntimeClassMissing, Object: w.object,
				Message: fmt.Sprintf("%s: its pods name the RuntimeClass %s, which neither the cluster nor the set has, so they will be refused — create it, or correct runtimeClassName", w.object, *name),
				Fix:     "create the RuntimeClass " + *name + ", or correct runtimeClassName",
			})
		case class != nil && !told[*name]:
			told[*name] = true
			findings = append(findings, tinyOverhead(class)...)
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		findings = append(findings, notLooked("RuntimeClasses", fmt.Sprintf("the RuntimeClasses of the cluster were not read, so the overhead of %s is left out of the requests",
			several(slices.Compact(unknown)))))
	}
	return findings
}

// tinyOverhead warns of a memory overhead below one mebibyte: a number without its unit.
func tinyOverhead(class *nodev1.RuntimeClass) []Finding {
	if class.Overhead == nil {
		return nil
	}
	memory, ok := class.Overhead.PodFixed[corev1.ResourceMemory]
	if !ok || memory.IsZero() || memory.Cmp(*resource.NewQuantity(1<<20, resource.BinarySI)) >= 0 {
		return nil
	}
	return []Finding{{
		Severity: Warn, Code: CodeRuntimeClassTiny, Object: "RuntimeClass " + class.Name,
		Message: fmt.Sprintf("RuntimeClass %s has a memory overhead of %d bytes, and no sandbox runs in so little — write the unit: %sMi", class.Name, memory.Value(),
			strings.TrimRight(memory.String(), "kKmMiI")),
		Fix: "write the unit of overhead.podFixed.memory",
	}}
}
