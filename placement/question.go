package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A question is one pod asked of many nodes: everything about the pod is read once.
type question struct {
	pod    *corev1.Pod
	nodes  []corev1.Node
	screen *screen
	asks   amounts
	order  []corev1.ResourceName // of asks, those above zero
	ports  []hostPort
	// on is what runs on each node, by the place in nodes.
	on     []use
	spread []spread
	pods   *neighbors
}

func ask(pod *corev1.Pod, nodes []corev1.Node, opts ExplainOptions) *question {
	q := &question{pod: pod, nodes: nodes, screen: screenOf(&pod.Spec, podWords()), asks: amountsOf(Requests(pod)), ports: hostPorts(&pod.Spec)}
	for _, name := range slices.Sorted(maps.Keys(q.asks.others)) {
		if q.asks.others[name] > 0 {
			q.order = append(q.order, name)
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceEphemeralStorage, corev1.ResourceMemory, corev1.ResourceCPU} {
		if q.asks.of(name) > 0 {
			q.order = slices.Insert(q.order, 0, name)
		}
	}
	q.on = occupy(pod, nodes, opts)
	q.spread = spreadsOf(q)
	q.pods = neighborsOf(q, opts)
	return q
}

func (q *question) answer(i int) NodeAnswer {
	node := &q.nodes[i]
	answer := NodeAnswer{Node: node.Name, Answer: Usable}
	reasons := q.screen.appendReasons(nil, node)
	if !q.portsFree(i) {
		reasons = append(reasons, Reason{Code: ReasonPort, Answer: Full, Text: "has a pod that holds the host port that the pod wants", Scheduler: wordsPort})
	}
	reasons = q.appendRoom(reasons, i)
	reasons = q.appendSpread(reasons, i)
	reasons = q.pods.appendReasons(reasons, node)
	for _, reason := range reasons {
		if reason.Answer.worse(answer.Answer) {
			answer.Answer = reason.Answer
		}
	}
	answer.Reasons = reasons
	if answer.Answer != Never {
		answer.Leaving = slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return kindOf(taint.Key) == leavingTaint && taint.Effect != corev1.TaintEffectPreferNoSchedule
		})
	}
	return answer
}

// appendRoom compares what the pod asks with what is free of this node alone.
func (q *question) appendRoom(reasons []Reason, i int) []Reason {
	if q.enough(i) {
		return reasons
	}
	node, on := &q.nodes[i], &q.on[i]
	if len(node.Status.Allocatable) == 0 {
		reasons = append(reasons, Reason{Code: ReasonUnreported, Answer: Soon, Text: "has not reported yet what it has", Scheduler: wordsSlots})
		for _, name := range q.order {
			reasons = append(reasons, Reason{Code: ReasonUnreported, Answer: Soon, Text: fmt.Sprintf("has not reported yet what it has of %s", name), Scheduler: wordsShort + string(name)})
		}
		return reasons
	}
	if on.slots+1 > on.has.slots {
		answer := Full
		if on.has.slots < 1 {
			answer = Never
		}
		reasons = append(reasons, Reason{Code: ReasonSlots, Answer: answer, Text: fmt.Sprintf("has no free pod slot: pods %d/%d", on.slots, on.has.slots), Scheduler: wordsSlots,
			Shortage: &Shortage{Resource: corev1.ResourcePods, Wanted: quantityOf("", 1), Free: quantityOf("", max(on.has.slots-on.slots, 0)), Allocatable: quantityOf("", on.has.slots)}})
	}
	for _, name := range q.order {
		wanted, has, held := q.asks.of(name), on.has.of(name), on.held.of(name)
		if wanted <= has-held {
			continue
		}
		free := max(has-held, 0)
		reason := Reason{Code: ReasonNoRoom, Answer: Full, Scheduler: wordsShort + string(name),
			Text:     fmt.Sprintf("has no room: %s %s free of %s wanted", name, amountText(name, free), amountText(name, wanted)),
			Shortage: &Shortage{Resource: name, Wanted: quantityOf(name, wanted), Free: quantityOf(name, free), Allocatable: quantityOf(name, has)}}
		if wanted > has {
			reason.Code, reason.Answer = ReasonTooSmall, Never
			reason.Text = fmt.Sprintf("is too small: %s %s allocatable of %s wanted", name, amountText(name, has), amountText(name, wanted))
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// enough says whether the node has a slot and room.
func (q *question) enough(i int) bool {
	on := &q.on[i]
	if on.slots+1 > on.has.slots {
		return false
	}
	for _, name := range q.order {
		if q.asks.of(name) > on.has.of(name)-on.held.of(name) {
			return false
		}
	}
	return true
}

// times is how many more of the pod the room of one node alone bears.
func (q *question) times(i int) int64 {
	on := &q.on[i]
	times := max(on.has.slots-on.slots, 0)
	for _, name := range q.order {
		times = min(times, max(on.has.of(name)-on.held.of(name), 0)/q.asks.of(name))
	}
	if len(q.ports) > 0 {
		times = min(times, 1)
	}
	return times
}

// A hostPort is a port of a node that a container takes.
type hostPort struct {
	ip       string
	protocol corev1.Protocol
	port     int32
}

// hostPorts are those of containers that run as long as the pod does.
func hostPorts(spec *corev1.PodSpec) []hostPort {
	var ports []hostPort
	add := func(container *corev1.Container) {
		for _, port := range container.Ports {
			number := port.HostPort
			if spec.HostNetwork && number == 0 {
				number = port.ContainerPort // the API server's default
			}
			if number > 0 {
				ports = append(ports, hostPort{port.HostIP, port.Protocol, number})
			}
		}
	}
	for i := range spec.InitContainers {
		if policy := spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	return ports
}

func (p hostPort) conflicts(o hostPort) bool {
	protocol := func(h hostPort) string { return strings.ToUpper(string(orTCP(h.protocol))) }
	anywhere := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	return p.port == o.port && protocol(p) == protocol(o) && (anywhere(p.ip) || anywhere(o.ip) || p.ip == o.ip)
}

func orTCP(protocol corev1.Protocol) corev1.Protocol {
	if protocol == "" {
		return corev1.ProtocolTCP
	}
	return protocol
}

func (q *question) portsFree(i int) bool {
	for _, want := range q.ports {
		if slices.ContainsFunc(q.on[i].ports, want.conflicts) {
			return false
		}
	}
	return true
}
