package apply

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A wave is what is written together: the objects of one phase with one number, by the tiers of their kinds.
type wave struct {
	turn
	tiers [tierCount][]int // indexes of the objects
}

// A turn is when a wave comes.
type turn struct {
	phase  Phase
	number int
}

func compareTurns(a, b turn) int {
	return cmp.Or(rank(a.phase)-rank(b.phase), cmp.Compare(a.number, b.number))
}

// schedule puts the objects into waves, in the order in which they come; those of SyncFail are the last. What
// annotations say gives way to what can't be otherwise: a Namespace, a CustomResourceDefinition and whatever else an
// object needs when it is created (see needsOf) come no later than the first object that needs them (a hook of a
// failure may be that at once), and a webhook configuration no earlier than the Services of the set that it calls, and
// the workloads behind them. A hook that comes earlier for that has another phase from then on.
func schedule(orders []order) []wave {
	waves := map[turn]*wave{}
	for i, turns := range turnsOf(orders) {
		for _, t := range turns {
			if waves[t] == nil {
				waves[t] = &wave{turn: t}
			}
			tier := tierOf(orders[i].ref)
			waves[t].tiers[tier] = append(waves[t].tiers[tier], i)
		}
	}
	var all []wave
	for _, t := range slices.SortedFunc(maps.Keys(waves), compareTurns) {
		all = append(all, *waves[t])
	}
	return all
}

// turnsOf lists for each object when it is written: once, or once for each phase of a hook.
func turnsOf(orders []order) [][]turn {
	all := make([][]turn, len(orders))
	ground := map[Ref]int{} // what others need, by its name; definitions by the kind that they bring
	for i, o := range orders {
		if !o.pos.isHook() {
			all[i] = []turn{{Sync, o.pos.wave}}
		}
		for _, p := range o.pos.phases {
			all[i] = append(all[i], turn{p, o.pos.wave})
		}
		ground[o.ref.key()] = i
		if tierOf(o.ref) == tierKinds {
			ground[broughtBy(o.body)] = i
		}
	}
	first := firstOf(all)
	needs := func(i int, what Ref) {
		from := all[i][0]
		if from.phase == SyncFail { // whatever fails
			from = first
		}
		if g, ok := ground[what]; ok && g != i && compareTurns(from, all[g][0]) < 0 {
			all[g][0] = from
			if orders[g].pos.isHook() {
				orders[g].pos.phases = phasesOf(all[g])
			}
		}
	}
	for i, o := range orders {
		for _, what := range needsOf(o) {
			needs(i, what)
		}
	}
	for i, o := range orders { // after those, because what came earlier takes its namespace along
		needs(i, Ref{Kind: "Namespace", Name: o.ref.Namespace})
		needs(i, Ref{Group: o.ref.Group, Kind: o.ref.Kind})
	}
	for i, o := range orders {
		for _, s := range serversOf(o) {
			for _, at := range behind(orders, s) {
				if compareTurns(all[i][0], all[at][0]) < 0 {
					all[i][0] = all[at][0]
				}
			}
		}
	}
	return all
}

func phasesOf(turns []turn) []Phase {
	var phases []Phase
	for _, t := range turns {
		phases = append(phases, t.phase)
	}
	return phases
}

// firstOf is the earliest turn.
func firstOf(all [][]turn) turn {
	first := turn{phase: SyncFail}
	for _, t := range all {
		if compareTurns(t[0], first) < 0 {
			first = t[0]
		}
	}
	return first
}

// behind lists what a webhook needs before it is called: its Service, and the workloads of the set whose pods that
// selects.
func behind(orders []order, s server) []int {
	at := slices.IndexFunc(orders, func(o order) bool { return o.ref.key() == s.ref() })
	if at < 0 {
		return nil
	}
	all := []int{at}
	selector, _ := dig(orders[at].body.Object, "spec", "selector").(map[string]any)
	for i, o := range orders {
		if o.ref.Namespace == s.namespace && len(selector) > 0 && selects(selector, podLabels(o.body)) {
			all = append(all, i)
		}
	}
	return all
}

func selects(selector map[string]any, labels map[string]any) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// podLabels are the labels of the pods that a workload makes; none for other kinds.
func podLabels(o *unstructured.Unstructured) map[string]any {
	path := podSpecPath(o)
	if path == nil {
		return nil
	}
	labels, _ := dig(o.Object, append(slices.Clone(path[:len(path)-1]), "metadata", "labels")...).(map[string]any)
	return labels
}
