package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/seed"
	"jr2.dev/jr2/placement"
)

// node makes a ready node; taints are written as kubectl writes them, key[=value]:effect.
func node(name string, taints ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, text := range taints {
		key, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(key, "=")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return n
}

func labeled(n corev1.Node, labels map[string]string) corev1.Node {
	n.Labels = labels
	return n
}

func cordoned(n corev1.Node) corev1.Node {
	n.Spec.Unschedulable = true
	return n
}

func names(nodes []corev1.Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}

func agents() placement.Rules {
	return placement.Rules{
		NodeSelector: map[string]string{"pool": "agents"},
		Tolerations:  []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpEqual, Value: "agents", Effect: corev1.TaintEffectNoSchedule}},
	}
}

func TestLookGivesTheFirstReason(t *testing.T) {
	pool := map[string]string{"pool": "agents"}
	windows := node("n")
	windows.Status.NodeInfo.OperatingSystem = "windows"
	for name, test := range map[string]struct {
		node   corev1.Node
		rules  placement.Rules
		reason string // "" means that the node is usable
	}{
		"an ordinary node":         {node: node("n")},
		"the document's pool":      {node: labeled(node("n", "pool=agents:NoSchedule"), pool), rules: agents()},
		"no such label":            {node: node("n"), rules: agents(), reason: fmt.Sprintf(seed.LacksLabel, "pool")},
		"another value":            {node: labeled(node("n"), map[string]string{"pool": "web"}), rules: agents(), reason: "has the label pool=web, and sandbox.nodeSelector requires pool=agents"},
		"an empty value is none":   {node: labeled(node("n"), map[string]string{"pool": ""}), rules: agents(), reason: "has the label pool=, and sandbox.nodeSelector requires pool=agents"},
		"cordoned before label":    {node: cordoned(node("n", "x=y:NoSchedule")), rules: agents(), reason: "is cordoned"},
		"label before taint":       {node: node("n", "x=y:NoSchedule"), rules: agents(), reason: fmt.Sprintf(seed.LacksLabel, "pool")},
		"labels in key order":      {node: node("n"), rules: placement.Rules{NodeSelector: map[string]string{"b": "1", "a": "1"}}, reason: fmt.Sprintf(seed.LacksLabel, "a")},
		"NoSchedule":               {node: node("n", "x=y:NoSchedule"), reason: "has the taint x=y:NoSchedule, which sandbox.tolerations does not tolerate"},
		"NoExecute, no value":      {node: node("n", "x:NoExecute"), reason: "has the taint x:NoExecute, which sandbox.tolerations does not tolerate"},
		"PreferNoSchedule":         {node: node("n", "x=y:PreferNoSchedule")},
		"taints in order":          {node: node("n", "a:PreferNoSchedule", "b:NoSchedule", "c:NoExecute"), reason: "has the taint b:NoSchedule, which sandbox.tolerations does not tolerate"},
		"another effect":           {node: labeled(node("n", "pool=agents:NoExecute"), pool), rules: agents(), reason: "has the taint pool=agents:NoExecute, which sandbox.tolerations does not tolerate"},
		"a Windows node":           {node: windows, reason: "runs windows, and a Sandbox is a Linux pod"},
		"control plane, not ready": {node: node("n", "node.kubernetes.io/not-ready:NoSchedule", "node-role.kubernetes.io/control-plane:NoSchedule"), reason: "has the taint node-role.kubernetes.io/control-plane:NoSchedule, which sandbox.tolerations does not tolerate"},
	} {
		t.Run(name, func(t *testing.T) {
			survey := placement.Look([]corev1.Node{test.node}, test.rules)
			if test.reason == "" {
				if len(survey.Nodes) != 1 || len(survey.Excluded) != 0 {
					t.Fatalf("want a usable node, got %+v", survey.Excluded)
				}
				return
			}
			want := []placement.Exclusion{{Node: "n", Reason: test.reason}}
			if len(survey.Nodes) != 0 || !slices.Equal(survey.Excluded, want) {
				t.Errorf("got  %+v\nwant %+v", survey.Excluded, want)
			}
		})
	}
}

func TestTolerates(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Value: "2", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"equal":                {corev1.Toleration{Key: "gpu", Operator: "Equal", Value: "2", Effect: "NoSchedule"}, true},
		"no operator is Equal": {corev1.Toleration{Key: "gpu", Value: "2"}, true},
		"no effect is any":     {corev1.Toleration{Key: "gpu", Operator: "Exists"}, true},
		"another value":        {corev1.Toleration{Key: "gpu", Operator: "Equal", Value: "1"}, false},
		"no value":             {corev1.Toleration{Key: "gpu", Operator: "Equal"}, false},
		"another key":          {corev1.Toleration{Key: "cpu", Operator: "Exists"}, false},
		"another effect":       {corev1.Toleration{Key: "gpu", Operator: "Exists", Effect: "NoExecute"}, false},
		"everything":           {corev1.Toleration{Operator: "Exists"}, true},
		"no such operator":     {corev1.Toleration{Key: "gpu", Operator: "In", Value: "2"}, false},
		"greater than 1":       {corev1.Toleration{Key: "gpu", Operator: "Gt", Value: "1"}, true},
		"greater than 2":       {corev1.Toleration{Key: "gpu", Operator: "Gt", Value: "2"}, false},
		"less than 10":         {corev1.Toleration{Key: "gpu", Operator: "Lt", Value: "10"}, true},
		"less than a word":     {corev1.Toleration{Key: "gpu", Operator: "Lt", Value: "ten"}, false},
	} {
		if got := placement.Tolerates([]corev1.Toleration{test.toleration}, taint); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if placement.Tolerates(nil, taint) {
		t.Error("no toleration tolerates")
	}
}

func TestSchedulableIsTheUnion(t *testing.T) {
	nodes := []corev1.Node{
		labeled(node("agents", "pool=agents:NoSchedule"), map[string]string{"pool": "agents"}),
		node("web"),
		node("control-plane", "node-role.kubernetes.io/control-plane:NoSchedule"),
		cordoned(node("cordoned")),
		node("fresh", "node.kubernetes.io/not-ready:NoSchedule"),
	}
	for name, test := range map[string]struct {
		rules     []placement.Rules
		now, soon []string
	}{
		"an ordinary pod":          {now: []string{"web"}, soon: []string{"fresh"}},
		"ordinary and Sandbox":     {rules: []placement.Rules{{}, agents()}, now: []string{"agents", "web"}, soon: []string{"fresh"}},
		"Sandbox alone":            {rules: []placement.Rules{agents()}, now: []string{"agents"}},
		"one pod tolerates it now": {rules: []placement.Rules{{}, {Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists"}}}}, now: []string{"web", "fresh"}},
	} {
		now, soon := placement.Schedulable(nodes, test.rules...)
		if !slices.Equal(names(now), test.now) || !slices.Equal(names(soon), test.soon) {
			t.Errorf("%s: got %v and soon %v", name, names(now), names(soon))
		}
	}
}
