package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/preflight"
)

// TestF07TaintsOfASet is case F07 for workloads of a set: a taint that is expected to clear is waited for, a node that goes is none, a preference keeps
// nobody away, and no toleration is advised for a taint that clears.
func TestF07TaintsOfASet(t *testing.T) {
	text := workloadYAML("Deployment", "api", "", `{containers: [{name: api, image: "`+pinned+`"}]}`)
	const soon, never = "note not-schedulable-yet Deployment jarvis/api: ", "warn unschedulable Deployment jarvis/api: "
	clears := func(taint string) string {
		return soon + "n: has the taint " + taint + " for now; it is expected to clear by itself"
	}
	for name, test := range map[string]struct {
		taint string
		want  string
	}{
		"A": {"node.cilium.io/agent-not-ready:NoExecute", clears("node.cilium.io/agent-not-ready:NoExecute")},
		"B": {"startup-taint.cluster-autoscaler.kubernetes.io/x:NoSchedule", clears("startup-taint.cluster-autoscaler.kubernetes.io/x:NoSchedule")},
		"C": {"ToBeDeletedByClusterAutoscaler:NoSchedule", never + "n: is being removed"},
		"D": {"node.kubernetes.io/not-ready:NoExecute", clears("node.kubernetes.io/not-ready:NoExecute")},
		"E": {"x=y:PreferNoSchedule", ""},

		"a node that is lost":           {"node.kubernetes.io/unreachable:NoExecute", clears("node.kubernetes.io/unreachable:NoExecute")},
		"another agent":                 {"cni.istio.io/not-ready:NoSchedule", clears("cni.istio.io/not-ready:NoSchedule")},
		"a driver of volumes":           {"ebs.csi.aws.com/agent-not-ready:NoExecute", clears("ebs.csi.aws.com/agent-not-ready:NoExecute")},
		"a cloud's own":                 {"node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule", clears("node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule")},
		"another scaler":                {"karpenter.sh/unregistered:NoExecute", clears("karpenter.sh/unregistered:NoExecute")},
		"a state":                       {"node.kubernetes.io/disk-pressure:NoSchedule", clears("node.kubernetes.io/disk-pressure:NoSchedule")},
		"another that goes":             {"karpenter.sh/disrupted:NoSchedule", never + "n: is being removed"},
		"told by a cloud that it goes":  {"cloud.google.com/impending-node-termination:NoExecute", never + "n: is being removed"},
		"a preference for a state":      {"node.kubernetes.io/memory-pressure:PreferNoSchedule", ""},
		"a preference to leave":         {"DeletionCandidateOfClusterAutoscaler=1:PreferNoSchedule", ""},
		"somebody's wish":               {"x=y:NoSchedule", never + "n: has the taint x=y:NoSchedule, which the pod does not tolerate"},
		"a wish that reads like a word": {"not-ready-for-us:NoSchedule", never + "n: has the taint not-ready-for-us:NoSchedule"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			findings := schedulable(t, text, node("n", test.taint))
			says(t, findings, want...)
			for _, f := range findings {
				if f.Severity == preflight.Note && f.Fix != "" {
					t.Errorf("a state that clears asks for %q", f.Fix)
				}
			}
		})
	}
	t.Run("its architecture counts", func(t *testing.T) {
		for _, taint := range []string{"node.cilium.io/agent-not-ready:NoExecute", "startup-taint.cluster-autoscaler.kubernetes.io/x:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"} {
			arm := node("arm-1", taint)
			arm.Status.NodeInfo.Architecture = "arm64"
			image := workloadYAML("Deployment", "api", "", `{containers: [{name: api, image: "r.example.com/api:1"}]}`)
			says(t, preflight.Architectures(t.Context(), manifests(t, image), preflight.SetFacts{Images: registry, Nodes: []corev1.Node{node("amd-1"), arm}}),
				"warn image-platform Deployment jarvis/api: arm-1")
		}
	})
}
