package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// taintKind is what a taint's key says about how long the taint stays.
type taintKind int

const (
	// lastingTaint is somebody's wish about which pods run there: it stays until they take it away.
	lastingTaint taintKind = iota
	// transientTaint is a state of the node, set and taken away by a program.
	transientTaint
	// leavingTaint announces that the node goes away. A toleration does not change that.
	leavingTaint
)

// kindOf sorts taint keys. Kinds that only their key tells:
//
//   - Kubernetes' own conditions (https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/) clear when the
//     condition does. node.kubernetes.io/unschedulable is the shadow of a cordon: on a node that is not cordoned it is about to go.
//     node.kubernetes.io/out-of-service is set by a person for a node that is lost.
//   - Startup and status taints of the cluster autoscaler (its FAQ, "How does Cluster Autoscaler treat nodes with
//     status/startup/ignore taints?").
//   - Agents that hold pods back until they run use a key that ends in "not-ready", with any prefix: Cilium, Istio's CNI, the CSI
//     drivers of AWS, Gardener; and readiness.k8s.io/ is the prefix of the Node Readiness Controller.
//   - A node that leaves: the cluster autoscaler's and Karpenter's taint for removal, notices of interruption.
//
// Everything else is lasting: taking a wish for a state would have jr2 wait for ever without saying what to change.
func kindOf(key string) taintKind {
	switch key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable,
		"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered":
		return transientTaint
	case "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption", corev1.TaintNodeOutOfService,
		"node.cloudprovider.kubernetes.io/shutdown", "cloud.google.com/impending-node-termination",
		"aws-node-termination-handler/spot-itn", "aws-node-termination-handler/asg-lifecycle-termination",
		"aws-node-termination-handler/rebalance-recommendation":
		return leavingTaint
	}
	prefix, name, _ := strings.Cut(key, "/")
	startup := []string{"startup-taint.cluster-autoscaler.kubernetes.io", "status-taint.cluster-autoscaler.kubernetes.io",
		"ignore-taint.cluster-autoscaler.kubernetes.io", "readiness.k8s.io"}
	if slices.Contains(startup, prefix) || name == "not-ready" || strings.HasSuffix(name, "-not-ready") {
		return transientTaint
	}
	return lastingTaint
}
