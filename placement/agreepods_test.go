package placement_test

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
)

// madeUp is a pod that wants something of everything that the scheduler knows.
func madeUp(c chooser, name string) *corev1.Pod {
	pod := asks(name, c.pick("", "", "cpu=100m", "cpu=250m memory=100M", "cpu=1 memory=1Gi", "cpu=2500m", "cpu=3 memory=7Gi", "cpu=5", "memory=20Gi", "cpu=1 ephemeral-storage=30Gi", "cpu=700m ephemeral-storage=1Gi"), as(c.pick("a", "b", "c")))
	pod.Labels["kind"] = "made-up"
	if c.sometimes(0.5) {
		pod.Labels["version"] = c.pick("1", "2")
	}
	if c.sometimes(0.3) {
		pod.Namespace = "team"
	}
	madeUpShape(c, pod)
	madeUpNodes(c, &pod.Spec)
	madeUpNeighbors(c, pod)
	for range 2 {
		if c.sometimes(0.3) {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, madeUpSpread(c, pod))
		}
	}
	if all := pod.Spec.TopologySpreadConstraints; len(all) == 2 && all[0].TopologyKey == all[1].TopologyKey {
		pod.Spec.TopologySpreadConstraints = all[:1] // two of one key are not valid
	}
	if c.sometimes(0.03) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/admission"}}
	}
	return pod
}

// madeUpShape says what the pod takes of a node.
func madeUpShape(c chooser, pod *corev1.Pod) {
	spec := &pod.Spec
	if c.sometimes(0.25) {
		inits(container("x", c.pick("cpu=1", "cpu=4", "memory=9Gi")), sidecar("y", c.pick("cpu=500m", "memory=2Gi")), container("z", c.pick("", "cpu=2")))(pod)
	}
	if c.sometimes(0.2) {
		spec.Resources = &corev1.ResourceRequirements{Limits: list(c.pick("cpu=7 memory=20Gi", "cpu=8", "memory=31Gi cpu=6"))}
		if c.sometimes(0.5) {
			spec.Resources.Requests = list(c.pick("cpu=6", "cpu=5 memory=20Gi"))
		}
	}
	if c.sometimes(0.2) {
		class := "kata"
		spec.RuntimeClassName = &class
	}
	device := func(text string) {
		spec.Containers[0].Resources.Limits = list(text)
		for name, quantity := range list(text) {
			spec.Containers[0].Resources.Requests[name] = quantity
		}
	}
	switch {
	case c.sometimes(0.1):
		device("example.com/gpu=" + c.pick("1", "2"))
	case c.sometimes(0.06):
		device("memory=20Gi cpu=5 hugepages-2Mi=" + c.pick("64Mi", "128Mi"))
	}
	if c.sometimes(0.2) {
		hostPort(8000 + int32(c.IntN(2)))(pod)
		port := &spec.Containers[0].Ports[0]
		port.HostIP = c.pick("", "", "0.0.0.0", "10.0.0.1", "10.0.0.2")
		port.Protocol = corev1.Protocol(c.pick("", "TCP", "UDP"))
	}
}

// madeUpNodes says which nodes the pod wants and bears.
func madeUpNodes(c chooser, spec *corev1.PodSpec) {
	if c.sometimes(0.2) {
		spec.NodeSelector = map[string]string{"zone": c.pick("a", "b", "c", "c", "d")}
	}
	if c.sometimes(0.08) {
		spec.NodeSelector = map[string]string{"pool": c.pick("agents", "web")}
	}
	for range 3 {
		if !c.sometimes(0.35) {
			continue
		}
		toleration := corev1.Toleration{Key: c.pick("gpu", "pool", "x", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.cilium.io/agent-not-ready", "marker"), Operator: "Exists"}
		switch {
		case c.sometimes(0.2):
			toleration.Key = ""
		case c.sometimes(0.5):
			toleration.Operator, toleration.Value = corev1.TolerationOperator(c.pick("", "Equal")), c.pick("", "1", "agents")
		}
		toleration.Effect = corev1.TaintEffect(c.pick("", "", "NoSchedule", "NoExecute", "PreferNoSchedule"))
		spec.Tolerations = append(spec.Tolerations, toleration)
	}
	switch {
	case c.sometimes(0.25):
		spec.Affinity = placement.Rules{}.On(c.pick("large", "small", "slots", "gpu", "agents", "soft", "old", "fresh", "nowhere", "sidecar")).Affinity
	case c.sometimes(0.25):
		selector := &corev1.NodeSelector{}
		for range 1 + c.IntN(2) {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, madeUpTerm(c))
		}
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	}
}

func madeUpTerm(c chooser) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for range 1 + c.IntN(2) {
		need := corev1.NodeSelectorRequirement{Key: c.pick("zone", "pool", "rank"), Operator: corev1.NodeSelectorOperator(c.pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))}
		switch need.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			need.Values = []string{c.pick("a", "b", "agents", "3"), c.pick("c", "web", "5")}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			need.Values = []string{strconv.Itoa(c.IntN(10))}
		}
		term.MatchExpressions = append(term.MatchExpressions, need)
	}
	if c.sometimes(0.2) {
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOperator(c.pick("In", "NotIn")), Values: []string{c.pick("large", "gpu", "soft")}}}
	}
	return term
}

// madeUpNeighbors says which pods the pod wants near and away.
func madeUpNeighbors(c chooser, pod *corev1.Pod) {
	term := func() corev1.PodAffinityTerm {
		affinityTo(c.pick("a", "b", "c", "none"), c.pick("zone", "pool", corev1.LabelHostname), true)(pod)
		all := &pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		made := (*all)[0]
		pod.Spec.Affinity.PodAntiAffinity = nil
		switch {
		case c.sometimes(0.2):
			made.Namespaces = []string{"team"}
		case c.sometimes(0.2):
			made.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": c.pick("red", "blue")}}
		case c.sometimes(0.1):
			made.NamespaceSelector = &metav1.LabelSelector{}
		}
		switch {
		case c.sometimes(0.2):
			made.MatchLabelKeys = []string{"version"}
		case c.sometimes(0.2):
			made.MismatchLabelKeys = []string{"version"}
		}
		return made
	}
	if c.sometimes(0.2) {
		apart := []corev1.PodAffinityTerm{term()}
		if c.sometimes(0.3) {
			apart = append(apart, term())
		}
		defer func() {
			pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart}
		}()
	}
	if c.sometimes(0.15) {
		near := []corev1.PodAffinityTerm{term()}
		if c.sometimes(0.3) {
			near = append(near, term())
		}
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: near}
	}
}

func madeUpSpread(c chooser, pod *corev1.Pod) corev1.TopologySpreadConstraint {
	constraint := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + c.IntN(2)), TopologyKey: c.pick("zone", "zone", "pool", corev1.LabelHostname), WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.pick(pod.Labels["app"], pod.Labels["app"], "a")}},
	}
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	if c.sometimes(0.6) {
		constraint.NodeTaintsPolicy = &honor
	}
	if c.sometimes(0.3) {
		constraint.NodeAffinityPolicy = &ignore
	}
	if c.sometimes(0.3) {
		domains := int32(2 + c.IntN(4))
		constraint.MinDomains = &domains
	}
	if c.sometimes(0.3) {
		constraint.MatchLabelKeys = []string{c.pick("version", "app")}
		constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "made-up"}}
	}
	if c.sometimes(0.1) {
		constraint.WhenUnsatisfiable = corev1.ScheduleAnyway
		constraint.MinDomains = nil
	}
	return constraint
}
