package render

import (
	"time"

	"jr2.dev/jr2/internal/names"
)

// A Layer is a workload whose rollout a converge waits for and whose running image it verifies.
type Layer struct {
	// Name is how people call it: "operator", "orchestrator", "repo cache", "instance harness".
	Name string
	// Kind is Deployment, DaemonSet or StatefulSet, all of apps/v1.
	Kind      string
	Object    string
	Namespace string
	// Selector is a label selector for the Layer's pods, such as app=jr2-repo-cache.
	Selector string
	// Container is the one whose image counts; others may be injected by the cluster.
	Container string
	// Image is the reference that the container must carry.
	Image string
	// Timeout bounds the wait for the rollout.
	Timeout time.Duration
}

// OperatorLayer is the operator, shared by the Instances of a cluster.
func OperatorLayer(in Input) Layer {
	return Layer{"operator", "Deployment", names.OperatorDeployment, names.OperatorNamespace, names.LabelOperator + "=" + names.OperatorControlPlane,
		names.ManagerContainer, in.Kit.Operator, names.RolloutTimeout}
}

// OrchestratorLayer is the Orchestrator of the Instance.
func OrchestratorLayer(in Input) Layer {
	return Layer{"orchestrator", "Deployment", names.Orchestrator, in.namespace(), names.LabelApp + "=" + names.Orchestrator,
		names.OrchestratorContainer, in.Kit.Orchestrator, names.RolloutTimeout}
}

// RepoCacheLayer is the Repo cache, which runs the operator's image.
func RepoCacheLayer(in Input) Layer {
	return Layer{"repo cache", "DaemonSet", names.RepoCacheName, in.namespace(), names.LabelApp + "=" + names.RepoCacheName,
		names.RepoCacheContainer, in.Kit.Operator, names.RolloutTimeout}
}

// InstanceHarnessLayer is the Instance Harness.
func InstanceHarnessLayer(in Input) Layer {
	return Layer{"instance harness", "StatefulSet", names.InstanceHarnessName, in.namespace(), names.LabelApp + "=" + names.InstanceHarnessName,
		names.HarnessContainer, in.Kit.Harness, names.HarnessTimeout}
}

// Layers lists the Layers that this Instance has, in the order in which they roll out.
func Layers(in Input) []Layer {
	var layers []Layer
	if ManagesOperator(in) {
		layers = append(layers, OperatorLayer(in))
	}
	layers = append(layers, OrchestratorLayer(in))
	if NeedsRepoCache(in) {
		layers = append(layers, RepoCacheLayer(in))
	}
	if NeedsInstanceHarness(in) {
		layers = append(layers, InstanceHarnessLayer(in))
	}
	return layers
}

// ManagesOperator says whether the converge applies the operator (operator.manage).
func ManagesOperator(in Input) bool {
	manage := in.Instance.Operator.Manage
	return manage == nil || *manage
}

// NeedsRepoCache says whether a registered Machine makes a Sandbox.
func NeedsRepoCache(in Input) bool { return in.Instance.ComposesSandbox() }

// NeedsInstanceHarness says whether an Agent works without a Workspace.
func NeedsInstanceHarness(in Input) bool { return in.Instance.NeedsInstanceHarness() }
