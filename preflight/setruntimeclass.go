package preflight

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/placement"
)

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

// tinyOverhead warns of a memory overhead that is a number without its unit.
func tinyOverhead(class *nodev1.RuntimeClass) []Finding {
	if class.Overhead == nil || !placement.TinyOverhead(class.Overhead.PodFixed) {
		return nil
	}
	memory := class.Overhead.PodFixed[corev1.ResourceMemory]
	return []Finding{{
		Severity: Warn, Code: CodeRuntimeClassTiny, Object: "RuntimeClass " + class.Name,
		Message: fmt.Sprintf("RuntimeClass %s has a memory overhead of %d bytes, and no sandbox runs in so little — write the unit: %sMi", class.Name, memory.Value(),
			strings.TrimRight(memory.String(), "kKmMiI")),
		Fix: "write the unit of overhead.podFixed.memory",
	}}
}
