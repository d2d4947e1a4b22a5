package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// A screen is what a pod says about nodes, read once for many of them. It knows nothing of what runs there.
type screen struct {
	nodeName    string
	system      string
	selector    map[string]string
	keys        []string // of selector, sorted
	tolerations []corev1.Toleration
	// required is the node affinity alone; nil when there is none.
	required *nodeaffinity.RequiredNodeAffinity
	// only are the names of the nodes that the affinity allows by name; nil when it allows others too.
	only map[string]bool
	// toleratesCordon says that the pod goes to cordoned nodes, as pods of DaemonSets do.
	toleratesCordon bool
	words           screenWords
}

// screenWords are how the reasons name what the pod says.
type screenWords struct{ selector, otherValue, tolerations, affinity, system string }

func podWords() screenWords {
	return screenWords{
		selector:    "lacks the label %s that the pod's nodeSelector requires",
		otherValue:  "the pod's nodeSelector",
		tolerations: "the pod does not tolerate",
		affinity:    "does not match the node affinity that the pod requires",
		system:      "runs %[1]s, and the pod is for %[2]s",
	}
}

func screenOf(spec *corev1.PodSpec, words screenWords) *screen {
	s := &screen{
		nodeName: spec.NodeName, system: "linux", selector: spec.NodeSelector, tolerations: spec.Tolerations, words: words,
		keys: slices.Sorted(maps.Keys(spec.NodeSelector)),
	}
	if spec.OS != nil {
		s.system = string(spec.OS.Name)
	} else if system := spec.NodeSelector[corev1.LabelOSStable]; system != "" {
		s.system = system
	}
	s.toleratesCordon = Tolerates(spec.Tolerations, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	if terms := requiredTerms(spec.Affinity); terms != nil {
		required := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{Affinity: spec.Affinity}})
		s.required, s.only = &required, onlyNames(terms)
	}
	return s
}

// requiredTerms is nil when there is no required node affinity; without terms it matches no node.
func requiredTerms(affinity *corev1.Affinity) *corev1.NodeSelector {
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// onlyNames are the nodes that the terms allow by name. The scheduler looks at no other node then.
func onlyNames(selector *corev1.NodeSelector) map[string]bool {
	names := map[string]bool{}
	for _, term := range selector.NodeSelectorTerms {
		var of []string
		named := false
		for _, field := range term.MatchFields {
			if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			if !named {
				of, named = slices.Clone(field.Values), true
				continue
			}
			of = slices.DeleteFunc(of, func(name string) bool { return !slices.Contains(field.Values, name) })
		}
		if !named {
			return nil
		}
		for _, name := range of {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	return names
}

// appendReasons appends why the node is not for this pod, in the scheduler's order.
func (s *screen) appendReasons(reasons []Reason, node *corev1.Node) []Reason {
	elsewhere := s.only != nil && !s.only[node.Name]
	if elsewhere {
		reasons = append(reasons, Reason{Code: ReasonAffinity, Answer: Never, Text: s.words.affinity, Scheduler: wordsElsewhere})
	}
	if node.Spec.Unschedulable && !s.toleratesCordon {
		reasons = append(reasons, Reason{Code: ReasonCordoned, Answer: Never, Text: "is cordoned", Scheduler: wordsCordoned})
	}
	if s.nodeName != "" && s.nodeName != node.Name {
		reasons = append(reasons, Reason{Code: ReasonNodeName, Answer: Never, Text: "is not the node that the pod names", Scheduler: wordsNodeName})
	}
	reasons = s.appendTaints(reasons, node)
	if reason, ok := s.label(node); ok {
		reasons = append(reasons, reason)
	}
	if !elsewhere && !s.affine(node) {
		reasons = append(reasons, Reason{Code: ReasonAffinity, Answer: Never, Text: s.words.affinity, Scheduler: wordsAffinity})
	}
	if reason, ok := s.otherSystem(node); ok {
		reasons = append(reasons, reason)
	}
	return reasons
}

// lands says whether the node is for this pod by the scheduler's rules, without saying why not.
func (s *screen) lands(node *corev1.Node) bool {
	if s.only != nil && !s.only[node.Name] || node.Spec.Unschedulable && !s.toleratesCordon || s.nodeName != "" && s.nodeName != node.Name {
		return false
	}
	for i := range node.Spec.Taints {
		if repels(node.Spec.Taints[i], s.tolerations) {
			return false
		}
	}
	for _, key := range s.keys {
		if have, ok := node.Labels[key]; !ok || have != s.selector[key] {
			return false
		}
	}
	return s.affine(node)
}

// appendTaints tells a cordon's shadow by the cordon alone.
func (s *screen) appendTaints(reasons []Reason, node *corev1.Node) []Reason {
	for _, taint := range node.Spec.Taints {
		if !repels(taint, s.tolerations) {
			continue
		}
		reason := Reason{Code: ReasonTaint, Answer: Never, Scheduler: wordsTaint, Taint: show(taint)}
		switch kind := kindOf(taint.Key); {
		case node.Spec.Unschedulable && taint.Key == corev1.TaintNodeUnschedulable:
			continue
		case kind == transientTaint:
			reason.Code, reason.Answer = ReasonStartup, Soon
			reason.Text = fmt.Sprintf("has the taint %s for now; it is expected to clear by itself", show(taint))
		case kind == leavingTaint:
			reason.Code, reason.Text = ReasonLeaving, fmt.Sprintf("is being removed (taint %s)", show(taint))
		default:
			reason.Text = fmt.Sprintf("has the taint %s, which %s", show(taint), s.words.tolerations)
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// label is the first label in which the node differs from the selector.
func (s *screen) label(node *corev1.Node) (Reason, bool) {
	for _, key := range s.keys {
		want := s.selector[key]
		have, ok := node.Labels[key]
		if ok && have == want {
			continue
		}
		reason := Reason{Code: ReasonLabel, Answer: Never, Scheduler: wordsAffinity, Label: key + "=" + want}
		if ok {
			reason.Text = fmt.Sprintf("has the label %s=%s, and %s requires %s=%s", key, have, s.words.otherValue, key, want)
		} else {
			reason.Text = fmt.Sprintf(s.words.selector, key)
		}
		return reason, true
	}
	return Reason{}, false
}

// affine says whether the node matches the required node affinity. One that can't be read matches nothing, as for the scheduler.
func (s *screen) affine(node *corev1.Node) bool {
	if s.required == nil {
		return true
	}
	match, _ := s.required.Match(node) //nolint:errcheck // as the scheduler does
	return match
}

func (s *screen) otherSystem(node *corev1.Node) (Reason, bool) {
	system := node.Status.NodeInfo.OperatingSystem
	if system == "" || strings.EqualFold(system, s.system) {
		return Reason{}, false
	}
	return Reason{Code: ReasonSystem, Answer: Never, Text: fmt.Sprintf(s.words.system, system, s.system)}, true
}
