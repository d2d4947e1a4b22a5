package placement_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/placement"
)

func tier(value string) placement.Rules {
	return placement.Rules{
		NodeSelector: map[string]string{"workload-tier": value},
		Tolerations:  []corev1.Toleration{{Key: "workload-tier", Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule}},
	}
}

func TestK01Modes(t *testing.T) {
	two := placement.Rules{Tolerations: []corev1.Toleration{{Key: "a", Value: "1"}, {Key: "b", Operator: "Exists"}}}
	turned := placement.Rules{Tolerations: []corev1.Toleration{{Key: "b", Operator: "Exists"}, {Key: "a", Operator: "Equal", Value: "1"}}}
	affine := tier("kora").On("node-1")
	spread := placement.Rules{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}}}
	const rwo, rwx, rwop, rox = corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadWriteOncePod, corev1.ReadOnlyMany
	for name, test := range map[string]struct {
		agents, sandboxes placement.Rules
		access            []corev1.PersistentVolumeAccessMode
		mode              placement.Mode
		refused           string // a part of it
	}{
		"the default":                  {mode: placement.CoLocated},
		"the document's pools":         {tier("kora"), tier("kora-sandbox"), []corev1.PersistentVolumeAccessMode{rwx}, placement.SeparatePool, ""},
		"pools without ReadWriteMany":  {tier("kora"), tier("kora-sandbox"), []corev1.PersistentVolumeAccessMode{rwo}, placement.SeparatePool, "the workspace is ReadWriteOnce — set its accessModes to ReadWriteMany"},
		"pools, nothing said":          {tier("kora"), tier("kora-sandbox"), nil, placement.SeparatePool, "the workspace is ReadWriteOnce"},
		"both modes":                   {tier("kora"), tier("kora-sandbox"), []corev1.PersistentVolumeAccessMode{rwo, rwx}, placement.SeparatePool, ""},
		"one pool for both":            {tier("kora"), tier("kora"), nil, placement.CoLocated, ""},
		"one pod at a time":            {access: []corev1.PersistentVolumeAccessMode{rwop}, mode: placement.CoLocated, refused: "ReadWriteOncePod does not let two pods write"},
		"read only":                    {tier("a"), tier("b"), []corev1.PersistentVolumeAccessMode{rox}, placement.SeparatePool, "ReadOnlyMany"},
		"only one of them":             {placement.Rules{}, tier("x"), nil, placement.SeparatePool, "ReadWriteOnce"},
		"tolerations in another order": {two, turned, nil, placement.CoLocated, ""},
		"empty is none":                {placement.Rules{NodeSelector: map[string]string{}}, placement.Rules{}, nil, placement.CoLocated, ""},
		"another priority":             {placement.Rules{PriorityClassName: "a"}, placement.Rules{PriorityClassName: "b"}, nil, placement.CoLocated, ""},
		"another affinity":             {tier("kora"), affine, nil, placement.SeparatePool, "ReadWriteOnce"},
		"another spread":               {placement.Rules{}, spread, nil, placement.SeparatePool, "ReadWriteOnce"},
	} {
		if mode := placement.ModeOf(test.agents, test.sandboxes); mode != test.mode {
			t.Errorf("%s: %s", name, mode)
		}
		err := placement.CheckWorkspace(test.agents, test.sandboxes, test.access...)
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", name, err)
		}
		if refusal := (*placement.WorkspaceError)(nil); err != nil && (!errors.As(err, &refusal) || refusal.Mode != test.mode || !strings.HasPrefix(err.Error(), "refusing: ")) {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

func TestK01CoLocatedRulesNameTheNode(t *testing.T) {
	pool := placement.Rules{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}},
			{},
		}}}}}
	nodes := []corev1.Node{labeled(machine("1", ""), map[string]string{"pool": "a"}), labeled(machine("2", ""), map[string]string{"pool": "b"}), machine("3", "")}
	usable := func(rules placement.Rules) string {
		pod := asking("")
		rules.Write(&pod.Spec)
		return fmt.Sprint(placement.Explain(pod, nodes, placement.ExplainOptions{}).With(placement.Usable))
	}
	for name, test := range map[string]struct {
		rules placement.Rules
		want  string
	}{
		"any":                       {placement.Rules{}.On("2"), "[2]"},
		"of a pool":                 {pool.On("2"), "[2]"},
		"outside the pool":          {pool.On("3"), "[]"},
		"the rules are not changed": {pool, "[1 2]"},
	} {
		if got := usable(test.rules); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func ExampleCheckWorkspace() {
	agents := placement.Rules{NodeSelector: map[string]string{"workload-tier": "kora"}}
	sandboxes := placement.Rules{NodeSelector: map[string]string{"workload-tier": "kora-sandbox"}}
	fmt.Println(placement.ModeOf(agents, sandboxes))
	fmt.Println(placement.CheckWorkspace(agents, sandboxes, corev1.ReadWriteMany))
	fmt.Println(placement.CheckWorkspace(agents, sandboxes, corev1.ReadWriteOnce) != nil)
	// Output:
	// separate pool
	// <nil>
	// true
}

func ExampleModeOf() {
	fmt.Println(placement.ModeOf(placement.Rules{}, placement.Rules{}))
	// Output: co-located
}

func ExampleRules_On() {
	rules := placement.Rules{}.On("agents-1")
	fmt.Println(rules.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values)
	// Output: [agents-1]
}
