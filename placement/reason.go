package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// An Answer is what one node says to one pod.
type Answer string

// The answers, best first.
const (
	// Usable nodes take the pod now.
	Usable Answer = "usable"
	// Soon is a node that something keeps out which is expected to clear by itself, such as a startup taint. Wait; tolerate nothing.
	Soon Answer = "soon"
	// Full is a node that would take the pod if what runs in the cluster were otherwise: others hold the room, the slot, the port, or the place.
	Full Answer = "full"
	// Never is a node that does not take the pod until somebody changes the node or the pod.
	Never Answer = "never"
)

// worse orders answers: the worst reason of a node is its answer.
func (a Answer) worse(b Answer) bool { return a.rank() > b.rank() }

func (a Answer) rank() int {
	switch a {
	case Never:
		return 3
	case Full:
		return 2
	case Soon:
		return 1
	}
	return 0
}

// A ReasonCode is a kind of reason. Codes are stable; texts are not.
type ReasonCode string

// The kinds of reasons, in the order in which the scheduler asks.
const (
	ReasonNodeName   ReasonCode = "node-name"   // the pod names another node
	ReasonCordoned   ReasonCode = "cordoned"    // spec.unschedulable
	ReasonTaint      ReasonCode = "taint"       // one that stays until somebody takes it away
	ReasonStartup    ReasonCode = "startup"     // a taint that is expected to clear by itself
	ReasonLeaving    ReasonCode = "leaving"     // a taint that announces the node's end
	ReasonLabel      ReasonCode = "label"       // a label of the nodeSelector is absent or has another value
	ReasonAffinity   ReasonCode = "affinity"    // the required node affinity
	ReasonSystem     ReasonCode = "system"      // another operating system; the kubelet's rule and not the scheduler's
	ReasonPort       ReasonCode = "port"        // a host port is taken
	ReasonUnreported ReasonCode = "unreported"  // the kubelet has not said yet what the node has
	ReasonSlots      ReasonCode = "slots"       // no pod slot is free
	ReasonTooSmall   ReasonCode = "too-small"   // the pod asks for more than is allocatable
	ReasonNoRoom     ReasonCode = "no-room"     // others hold what the pod asks for
	ReasonSpread     ReasonCode = "spread"      // a topology spread constraint
	ReasonSpreadKey  ReasonCode = "spread-key"  // the node lacks the label that a spread constraint counts by
	ReasonNotBeside  ReasonCode = "not-beside"  // the pod's own anti-affinity
	ReasonNotWanted  ReasonCode = "not-wanted"  // the anti-affinity of a pod that runs
	ReasonNoNeighbor ReasonCode = "no-neighbor" // the pod's affinity: nobody it wants to be with is there
)

// A Reason is why a node does not take a pod.
type Reason struct {
	Code ReasonCode `json:"code"`
	// Answer is what the reason means if it is the only one.
	Answer Answer `json:"answer"`
	// Text is a clause without the node's name: "has the taint pool=agents:NoSchedule, which the pod does not tolerate".
	Text string `json:"text"`
	// Scheduler is how kube-scheduler counts such nodes in its message: "node(s) had untolerated taint(s)". "" when it does not: it would bind
	// the pod, and the kubelet would refuse it.
	Scheduler string `json:"scheduler,omitempty"`
	// Taint of ReasonTaint, ReasonStartup and ReasonLeaving, as kubectl takes it: "pool=agents:NoSchedule".
	Taint string `json:"taint,omitempty"`
	// Label that ReasonLabel misses: "pool=agents".
	Label string `json:"label,omitempty"`
	// Shortage has the numbers of ReasonSlots, ReasonTooSmall and ReasonNoRoom.
	Shortage *Shortage `json:"shortage,omitempty"`
}

// A Shortage is one resource of which one node has too little. Amounts are never added across nodes.
type Shortage struct {
	Resource corev1.ResourceName `json:"resource"`
	// Wanted is what the pod needs in all, Free is what is left, not below zero, of what is Allocatable to pods at all.
	Wanted      resource.Quantity `json:"wanted"`
	Free        resource.Quantity `json:"free"`
	Allocatable resource.Quantity `json:"allocatable"`
}

// kube-scheduler's words, of its 1.36 plugins. It counts the nodes of each, and asks the plugins in this order.
const (
	wordsElsewhere  = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
	wordsCordoned   = "node(s) were unschedulable"
	wordsNodeName   = "node(s) didn't match the requested node name"
	wordsTaint      = "node(s) had untolerated taint(s)"
	wordsAffinity   = "node(s) didn't match Pod's node affinity/selector"
	wordsPort       = "node(s) didn't have free ports for the requested pod ports"
	wordsSlots      = "Too many pods"
	wordsShort      = "Insufficient " // and the resource
	wordsSpread     = "node(s) didn't match pod topology spread constraints"
	wordsSpreadKey  = wordsSpread + " (missing required label)"
	wordsNoNeighbor = "node(s) didn't match pod affinity rules"
	wordsNotBeside  = "node(s) didn't match pod anti-affinity rules"
	wordsNotWanted  = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// stage is the place of a reason in the scheduler's order: it stops at the first plugin that says no, and tells only that one's reasons.
func (r Reason) stage() int {
	switch r.Scheduler {
	case "":
		return 99
	case wordsElsewhere:
		return 0
	case wordsCordoned:
		return 1
	case wordsNodeName:
		return 2
	case wordsTaint:
		return 3
	case wordsAffinity:
		return 4
	case wordsPort:
		return 5
	case wordsSpread, wordsSpreadKey:
		return 7
	case wordsNoNeighbor, wordsNotBeside, wordsNotWanted:
		return 8
	}
	return 6 // slots and resources, told together
}
