package placement_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/placement"
)

// A pod that bears a node which is not ready is let onto it: the API server adds that it stays there for a while.
func TestAdmitAddsTheTolerationsOfEveryPod(t *testing.T) {
	both := "node.kubernetes.io/not-ready Exists NoExecute 300, node.kubernetes.io/unreachable Exists NoExecute 300"
	for name, test := range map[string]struct {
		has  []corev1.Toleration
		want string
	}{
		"none":            {nil, both},
		"NoSchedule":      {[]corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: "Exists", Effect: "NoSchedule"}}, both},
		"all":             {[]corev1.Toleration{{Operator: "Exists"}}, ""},
		"all NoExecute":   {[]corev1.Toleration{{Operator: "Exists", Effect: "NoExecute"}}, ""},
		"one of them":     {[]corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: "Exists"}}, "node.kubernetes.io/not-ready Exists NoExecute 300"},
		"another's value": {[]corev1.Toleration{{Key: corev1.TaintNodeNotReady, Value: "x", Effect: "NoExecute"}}, "node.kubernetes.io/unreachable Exists NoExecute 300"},
	} {
		pod := asking("")
		pod.Spec.Tolerations = test.has
		admitted, _ := (&placement.Facts{}).Admit(pod)
		var added []string
		for _, toleration := range admitted.Spec.Tolerations[len(test.has):] {
			added = append(added, fmt.Sprintf("%s %s %s %d", toleration.Key, toleration.Operator, toleration.Effect, *toleration.TolerationSeconds))
		}
		if got := strings.Join(added, ", "); got != test.want || len(pod.Spec.Tolerations) != len(test.has) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	node := machine("n", "cpu=8", "node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute")
	pod := asking("cpu=1")
	pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: "Exists", Effect: "NoSchedule"}}
	admitted, _ := (&placement.Facts{}).Admit(pod)
	if got := placement.Explain(admitted, []corev1.Node{node}, placement.ExplainOptions{}); got.Best() != placement.Usable {
		t.Errorf("%v", told(got))
	}
}

// A default limit that is less than what a container requests makes a pod that the API server takes for wrong.
func TestAdmitComparesRequestsWithDefaultLimits(t *testing.T) {
	facts := &placement.Facts{Nodes: []corev1.Node{machine("n", "cpu=8 memory=32Gi ephemeral-storage=100Gi")}, LimitRanges: []corev1.LimitRange{limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) {
		i.Default = list("memory=256Mi ephemeral-storage=2Gi")
	})}}
	both := asking("memory=1Gi")
	both.Spec.Containers[0].Resources.Limits = list("memory=2Gi")
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a request":             {asking("memory=1Gi"), "limit range lr: memory of container app is 1Gi, and the limit of who states none is 256Mi"},
		"the disk of a Sandbox": {placement.SandboxPod("ns", placement.Share{Memory: 1 << 30, CPU: 1000, Disk: 10 << 30}, placement.Rules{}), "limit range lr: ephemeral-storage of container harness is 10Gi, and the limit of who states none is 2Gi"},
		"as much":               {asking("memory=256Mi"), ""},
		"a limit of its own":    {both, ""},
		"nothing":               {asking(""), ""},
	} {
		_, refused := facts.Admit(test.pod)
		if test.want == "" && len(refused) == 0 {
			continue
		}
		if room := placement.Room(test.pod, facts, placement.RoomOptions{}); len(refused) != 1 || refused[0].Text != test.want || !refused[0].Never || room.More != 0 {
			t.Errorf("%s: got %+v, %s", name, refused, room)
		}
	}
}
