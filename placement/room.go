package placement

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podresources "k8s.io/component-helpers/resource"
)

// RoomOptions say what comes with each pod and what counts. The zero value is a pod alone.
type RoomOptions struct {
	// Objects are made beside each pod and counted by quotas: SandboxObjects for a Sandbox.
	Objects corev1.ResourceList
	// GivesWay is that of ExplainOptions.
	GivesWay func(*corev1.Pod) bool
	// Most bounds the count where pods must be placed one by one because they see each other (topology spread, affinity to their own kind).
	// Default 1000.
	Most int64
}

// Headroom is how many more pods of one shape a cluster admits now.
type Headroom struct {
	// More is the count; with AtLeast the count was stopped there.
	More    int64 `json:"more"`
	AtLeast bool  `json:"atLeast,omitempty"`
	// LimitedBy are the limits that let in no more than that. Empty when nothing that was read limits.
	LimitedBy []Limit `json:"limitedBy"`
	// Each is what one pod asks of a node: its Size, its disk and the overhead of its RuntimeClass.
	Each corev1.ResourceList `json:"each"`
	// Nodes are how many more each node takes, in order, and what it says to one beyond those.
	Nodes []NodeRoom `json:"nodes"`
	// Quotas are all resources of quotas that count such a pod, whether or not they limit first.
	Quotas []Limit `json:"quotas"`
	// Waiting pods of the cluster have no node yet, and compete for the same room. Gated ones are held by their queues and not by a node:
	// they hold nothing of nodes, and what quotas count of them is in the quotas' numbers.
	Waiting int `json:"waiting,omitempty"`
	Gated   int `json:"gated,omitempty"`
	// Gates of the pod itself: whatever room there is, its queue lets it go first.
	Gates []string `json:"gates,omitempty"`
	// Unread are the kinds of objects that nobody read and that could limit: "nodes".
	Unread []string `json:"unread,omitempty"`

	what string
}

// NodeRoom is the room of one node.
type NodeRoom struct {
	More int64 `json:"more"`
	NodeAnswer
}

// Room counts how many more pods of this shape the API server would let in and the scheduler would place now, and says what limits it. The
// shape is admitted first: see Facts.Admit. Free amounts are never added across nodes: a node that has half the room takes none.
//
// Where pods see each other the count is that of placing them one by one on the node that keeps them most even. Nothing is reserved: who asks
// first gets the room.
func Room(pod *corev1.Pod, facts *Facts, opts RoomOptions) Headroom {
	pod, refused := facts.Admit(pod)
	room := Headroom{More: -1, Each: Requests(pod), Gates: Gates(pod), Quotas: []Limit{}, what: describe(pod)}
	limits := refused
	for i := range facts.Quotas {
		if facts.Quotas[i].Namespace == pod.Namespace {
			room.Quotas = append(room.Quotas, quotaLimits(&facts.Quotas[i], pod, opts.Objects)...)
		}
	}
	limits = append(limits, room.Quotas...)
	if facts.Nodes != nil {
		limits = append(limits, room.onNodes(pod, facts, opts))
	}
	for _, limit := range limits {
		if room.More < 0 || limit.More < room.More {
			room.More = limit.More
		}
	}
	room.LimitedBy = []Limit{}
	for _, limit := range limits {
		if limit.More == room.More && (limit.On != OnNode || !room.AtLeast) {
			room.LimitedBy = append(room.LimitedBy, limit)
		}
	}
	if room.AtLeast && len(room.LimitedBy) > 0 {
		room.AtLeast = false
	}
	if room.More < 0 {
		room.More, room.AtLeast = 0, true
	}
	room.look(facts, opts)
	return room
}

// look counts who waits and names what was not read. Who gives way does not compete.
func (h *Headroom) look(facts *Facts, opts RoomOptions) {
	for i := range facts.Pods {
		switch pod := &facts.Pods[i]; {
		case pod.Spec.NodeName != "" || ended(pod) || pod.DeletionTimestamp != nil:
		case opts.GivesWay != nil && opts.GivesWay(pod):
		case len(pod.Spec.SchedulingGates) > 0:
			h.Gated++
		default:
			h.Waiting++
		}
	}
	for _, part := range []struct {
		what string
		read bool
	}{{"nodes", facts.Nodes != nil}, {"pods", facts.Pods != nil}, {"resourcequotas", facts.Quotas != nil}, {"limitranges", facts.LimitRanges != nil}} {
		if !part.read {
			h.Unread = append(h.Unread, part.what)
		}
	}
}

// onNodes places as many as go and returns the nodes' limit.
func (h *Headroom) onNodes(pod *corev1.Pod, facts *Facts, opts RoomOptions) Limit {
	q := ask(pod, facts.Nodes, ExplainOptions{Pods: facts.Pods, DaemonSets: facts.DaemonSets, Namespaces: facts.Namespaces, GivesWay: opts.GivesWay})
	most := opts.Most
	if most <= 0 {
		most = 1000
	}
	more := make([]int64, len(facts.Nodes))
	limit := Limit{On: OnNode}
	if q.sees() {
		limit.More, h.AtLeast = q.placeEach(more, most)
	} else {
		for i := range facts.Nodes {
			if q.takes(i) {
				more[i] = q.times(i)
				q.place(i, more[i])
			}
			limit.More += more[i]
		}
	}
	explanation := Explanation{Nodes: make([]NodeAnswer, len(facts.Nodes))}
	h.Nodes = make([]NodeRoom, len(facts.Nodes))
	for i := range facts.Nodes {
		explanation.Nodes[i] = q.answer(i)
		h.Nodes[i] = NodeRoom{More: more[i], NodeAnswer: explanation.Nodes[i]}
	}
	limit.Never = limit.More == 0 && explanation.Best() == Never
	limit.Text = "the nodes"
	if why := explanation.Why(); why != "" {
		limit.Text = "the nodes (" + why + ")"
	}
	return limit
}

// sees says whether pods of this shape change each other's places.
func (q *question) sees() bool {
	for i := range q.spread {
		if q.spread[i].self > 0 {
			return true
		}
	}
	for _, terms := range [][]term{q.pods.near, q.pods.apart} {
		for i := range terms {
			if terms[i].selects(q.pod) {
				return true
			}
		}
	}
	return false
}

// takes says whether one more lands on the node now.
func (q *question) takes(i int) bool {
	node := &q.nodes[i]
	if _, other := q.screen.otherSystem(node); other || !q.screen.lands(node) {
		return false
	}
	return q.takesMore(i)
}

// takesMore is the part of takes that changes as pods are placed.
func (q *question) takesMore(i int) bool {
	node := &q.nodes[i]
	if !q.enough(i) || !q.portsFree(i) {
		return false
	}
	for n := range q.spread {
		if !q.spread[n].holds(i) {
			return false
		}
	}
	return q.pods.company(node) && q.pods.alone(node) && q.pods.welcome(node)
}

// place puts some of the pod on a node.
func (q *question) place(i int, times int64) {
	if times == 0 {
		return
	}
	on, node := &q.on[i], &q.nodes[i]
	for n := int64(0); n < times; n++ {
		on.held.add(q.asks)
	}
	on.slots += times
	on.ports = append(on.ports, q.ports...)
	for n := range q.spread {
		s := &q.spread[n]
		if s.self > 0 && !s.selector.Empty() && hasKeys(node, q.spread) && q.eligible(node, s.honors) {
			*s.at[i] += int(times)
			s.lowSet = false
		}
	}
	q.pods.count(q.pod, node)
}

// placeEach places one by one, each on the node whose domains have the fewest so far.
func (q *question) placeEach(more []int64, most int64) (placed int64, stopped bool) {
	var open []int
	for i := range q.nodes {
		if _, other := q.screen.otherSystem(&q.nodes[i]); !other && q.screen.lands(&q.nodes[i]) {
			open = append(open, i)
		}
	}
	for placed < most {
		best, fewest := -1, 0
		for _, i := range open {
			if count := q.crowd(i); (best < 0 || count < fewest) && q.takesMore(i) {
				best, fewest = i, count
			}
		}
		if best < 0 {
			return placed, false
		}
		q.place(best, 1)
		more[best]++
		placed++
	}
	return placed, true
}

// crowd is how many such pods the domains of a node have.
func (q *question) crowd(i int) int {
	crowd := 0
	for n := range q.spread {
		if at := q.spread[n].at[i]; at != nil {
			crowd += *at
		}
	}
	return crowd
}

// describe names the shape by what it asks for, without overhead: "memory 2Gi, cpu 1, ephemeral-storage 10Gi".
func describe(pod *corev1.Pod) string {
	asks := amountsOf(podresources.PodRequests(pod, podresources.PodResourcesOptions{ExcludeOverhead: true}))
	var parts []string
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU, corev1.ResourceEphemeralStorage} {
		if value := asks.of(name); value > 0 {
			parts = append(parts, string(name)+" "+amountText(name, value))
		}
	}
	for name, value := range asks.others {
		parts = append(parts, string(name)+" "+amountText(name, value))
	}
	if len(parts) == 0 {
		return "a pod that asks for nothing"
	}
	return strings.Join(parts, ", ")
}

// String is one line: "3 more of memory 2Gi, cpu 1; limited by quota team-quota: limits.memory 2Gi used of 8Gi, 2Gi each".
func (h Headroom) String() string {
	count := fmt.Sprint(h.More)
	if h.AtLeast {
		count = "at least " + count
	}
	line := fmt.Sprintf("%s more of %s", count, h.what)
	texts := make([]string, len(h.LimitedBy))
	for i, limit := range h.LimitedBy {
		texts[i] = limit.Text
	}
	if len(texts) > 0 {
		line += "; limited by " + strings.Join(texts, "; and by ")
	}
	if len(h.Gates) > 0 {
		line += "; and each waits for its scheduling gate " + strings.Join(h.Gates, ", ")
	}
	if len(h.Unread) > 0 {
		line += "; not read: " + strings.Join(h.Unread, ", ")
	}
	return line
}
