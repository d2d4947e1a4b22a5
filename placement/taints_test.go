package placement_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/placement"
)

// TestF07StartupTaints is the case, and siblings that it does not name: taints of the same kind by other programs, and taints that
// meet on one node.
func TestF07StartupTaints(t *testing.T) {
	for name, test := range map[string]struct {
		nodes        []corev1.Node
		rules        placement.Rules
		usable, soon []string // soon is those whose reason is expected to clear
	}{
		"the case": {
			nodes: []corev1.Node{
				node("A", "node.cilium.io/agent-not-ready:NoExecute"),
				node("B", "startup-taint.cluster-autoscaler.kubernetes.io/x:NoSchedule"),
				node("C", "ToBeDeletedByClusterAutoscaler:NoSchedule"),
				node("D", "node.kubernetes.io/not-ready:NoExecute"),
				node("E", "x=y:PreferNoSchedule"),
			},
			usable: []string{"E"}, soon: []string{"A", "B", "D"},
		},
		"sibling: the same kind by other programs": {
			nodes: []corev1.Node{
				node("gardener", "node.gardener.cloud/critical-components-not-ready:NoSchedule"),
				node("istio", "cni.istio.io/not-ready:NoSchedule"),
				node("ebs", "ebs.csi.aws.com/agent-not-ready:NoExecute"),
				node("readiness", "readiness.k8s.io/network=pending:NoSchedule"),
				node("karpenter", "karpenter.sh/unregistered:NoExecute"),
				node("cloud", "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"),
				node("disk", "node.kubernetes.io/disk-pressure:NoSchedule"),
				node("uncordoned", "node.kubernetes.io/unschedulable:NoSchedule"),
				node("leaving", "karpenter.sh/disrupted:NoSchedule"),
				node("lost", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"),
				node("wish", "team-not-ready-yet=true:NoSchedule"),
			},
			soon: []string{"gardener", "istio", "ebs", "readiness", "karpenter", "cloud", "disk", "uncordoned"},
		},
		"sibling: what meets on one node": {
			nodes: []corev1.Node{
				node("wish-too", "node.kubernetes.io/not-ready:NoExecute", "gpu=yes:NoSchedule"),
				node("leaving-too", "node.kubernetes.io/not-ready:NoExecute", "ToBeDeletedByClusterAutoscaler=1:NoSchedule"),
				cordoned(node("cordoned", "node.kubernetes.io/unschedulable:NoSchedule", "node.cilium.io/agent-not-ready:NoSchedule")),
				node("twice", "node.cilium.io/agent-not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"),
				node("soft", "node.cilium.io/agent-not-ready:PreferNoSchedule"),
			},
			usable: []string{"soft"}, soon: []string{"twice"},
		},
		"sibling: a pod that tolerates everything": {
			nodes: []corev1.Node{
				node("fresh", "node.kubernetes.io/not-ready:NoExecute"),
				node("wish", "gpu=yes:NoSchedule"),
				node("leaving", "ToBeDeletedByClusterAutoscaler:NoSchedule"),
			},
			rules:  placement.Rules{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
			usable: []string{"fresh", "wish"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := placement.Rules{Tolerations: slices.Clone(test.rules.Tolerations)}
			survey := placement.Look(test.nodes, test.rules)
			if got := names(survey.Nodes); !slices.Equal(got, test.usable) {
				t.Errorf("usable: got %v, want %v", got, test.usable)
			}
			var soon []string
			for _, excluded := range survey.Excluded {
				if excluded.Transient != strings.Contains(excluded.Reason, "for now; it is expected to clear by itself") {
					t.Errorf("%s says %q", excluded.Node, excluded.Reason)
				}
				if excluded.Transient {
					soon = append(soon, excluded.Node)
				}
			}
			if !slices.Equal(soon, test.soon) {
				t.Errorf("expected to clear: got %v, want %v", soon, test.soon)
			}
			now, later := placement.Schedulable(test.nodes, test.rules)
			if !slices.Equal(names(now), test.usable) || !slices.Equal(names(later), test.soon) {
				t.Errorf("schedulable: got %v and soon %v", names(now), names(later))
			}
			if !reflect.DeepEqual(before, test.rules) {
				t.Errorf("a toleration was added: %+v", test.rules)
			}
		})
	}
}
