package preflight

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// A level is the Pod Security level that a namespace will enforce once the set is there.
type level struct {
	enforce api.LevelVersion
	// before is what it enforces now.
	before api.LevelVersion
	// known says that the labels were read, from the set or from the cluster.
	known bool
	// arrives says that the set brings the level, so that the server cannot answer for it.
	arrives bool
	// fresh says that the namespace itself arrives, so that there is nobody to ask.
	fresh bool
}

// levels are those of the namespaces of the set and of its workloads. Labels of a living namespace that the set does not mention stay, as a
// server-side apply leaves them.
func (l *setLook) levels() map[string]level {
	all := map[string]level{}
	for _, name := range l.namespaces() {
		arriving, live := l.namespace(name), l.facts.Namespaces[name]
		labels := map[string]string{}
		if live != nil {
			maps.Copy(labels, live.Labels)
		}
		is := level{before: enforced(labels), known: live != nil}
		if arriving != nil {
			maps.Copy(labels, arriving.Labels)
			is.known = true
		}
		is.enforce = enforced(labels)
		switch {
		case arriving == nil:
		case live == nil && l.facts.Namespaces != nil:
			is.arrives, is.fresh = true, true
		case live == nil: // nobody knows whether it lives; what the set says will be true either way
			is.arrives = arriving.Labels[api.EnforceLevelLabel] != ""
		default:
			is.arrives = !is.enforce.Equivalent(&is.before)
		}
		all[name] = is
	}
	return all
}

// namespaces are the names of the namespaces of the set and of its workloads, in their order, each once.
func (l *setLook) namespaces() []string {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	for _, o := range l.objs {
		if o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" {
			add(o.GetName())
		}
	}
	for _, w := range l.workloads {
		add(w.namespace)
	}
	return names
}

// enforced reads the labels as the server does: what is not stated enforces nothing, and what cannot be read enforces the most.
func enforced(labels map[string]string) api.LevelVersion {
	open := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	stated, _ := api.PolicyToEvaluate(labels, api.Policy{Enforce: open, Audit: open, Warn: open})
	return stated.Enforce
}

// labelFaults are Pod Security labels of the set that say nothing: the server refuses the namespace for them.
func (l *setLook) labelFaults() []Finding {
	var findings []Finding
	for _, name := range l.namespaces() {
		arriving := l.namespace(name)
		if arriving == nil {
			continue
		}
		_, faults := api.PolicyToEvaluate(arriving.Labels, api.Policy{})
		for _, fault := range faults {
			findings = append(findings, Finding{
				Severity: Refuse, Code: CodePodSecurityLabel, Object: "Namespace " + name,
				Message: fmt.Sprintf("refusing: Namespace %s: %v — correct the label. Nothing was applied.", name, fault),
				Fix:     "correct the label " + fault.Field,
			})
		}
	}
	return findings
}

// violation says what of a pod is against a level, with container and field; "" when nothing is.
func violation(enforce api.LevelVersion, pod *corev1.Pod) string {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return fmt.Sprintf("the checks of the levels contradict each other: %v", err)
	}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(enforce, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return ""
	}
	return fmt.Sprintf("violates PodSecurity %q: %s", enforce.String(), result.ForbiddenDetail())
}

// refuse is the finding of a workload whose pods violate the level.
func (is level) refuse(w *workload) []Finding {
	words := violation(is.enforce, w.pod)
	if words == "" {
		return nil
	}
	return []Finding{securityFinding(w, words)}
}

func securityFinding(w *workload, words string) Finding {
	return Finding{
		Severity: Refuse, Code: CodePodSecurity, Object: w.object,
		Message: fmt.Sprintf("refusing: %s would be accepted and its pods would not: its pod template %s — set these fields in the template, or lower the level of namespace %s. Nothing was applied.",
			w.object, words, w.namespace),
		Fix: "set the named fields in the pod template",
	}
}

// runningViolations warns of pods that run in a namespace whose level the set raises. Pods that a workload of the set replaces with
// ones that pass do not count.
func (l *setLook) runningViolations(levels map[string]level) []Finding {
	var findings []Finding
	for _, name := range l.namespaces() {
		is := levels[name]
		if !is.arrives || is.fresh || is.enforce.Level == api.LevelPrivileged {
			continue
		}
		if l.facts.Pods == nil {
			findings = append(findings, notLooked("Namespace "+name, fmt.Sprintf("the set brings the level %s to namespace %s, and the running pods were not read, so nobody looked which of them violate it",
				is.enforce.String(), name)))
			continue
		}
		var names []string
		first := ""
		for i := range l.facts.Pods {
			pod := &l.facts.Pods[i]
			if pod.Namespace != name || ended(pod) || l.replaced(is, pod) {
				continue
			}
			if words := violation(is.enforce, pod); words != "" {
				names = append(names, pod.Name)
				if first == "" {
					first = strings.TrimPrefix(words, fmt.Sprintf("violates PodSecurity %q: ", is.enforce.String()))
				}
			}
		}
		if len(names) > 0 {
			findings = append(findings, Finding{
				Severity: Warn, Code: CodePodSecurityRunning, Object: "Namespace " + name,
				Message: fmt.Sprintf("Namespace %s: the level %s that the set brings is violated by %s (%s): what runs survives, and what replaces it will be refused — correct the workloads first; %s: %s",
					name, is.enforce.String(), plural(len(names), "running pod"), few(names), names[0], first),
				Fix: "correct the workloads of these pods before the label arrives",
			})
		}
	}
	return findings
}

// replaced says whether a workload of the set replaces the pod by one that passes.
func (l *setLook) replaced(is level, pod *corev1.Pod) bool {
	for _, w := range l.workloads {
		if w.owns(pod) && violation(is.enforce, w.pod) == "" {
			return true
		}
	}
	return false
}
