package apply

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A position is what the annotations of an object say about its place in the set.
type position struct {
	wave int
	// phases are those of a hook, in the order in which they come; none for an ordinary object.
	phases []Phase
	skip   bool
	// When a hook is deleted, besides before it is made again, which is always so: nothing else could take its name.
	whenSucceeded, whenFailed bool
}

func (p position) isHook() bool { return len(p.phases) > 0 }

// positionOf reads the annotations, and finds what Argo CD would pass over in silence: a wave that is no number, a phase or a policy
// that it does not know.
func positionOf(o *unstructured.Unstructured) (position, []fault) {
	var p position
	var faults []fault
	annotations, _ := dig(o.Object, "metadata", "annotations").(map[string]any)
	bad := func(key, text string) { faults = append(faults, fault{join("metadata.annotations", key), text}) }
	if s := text(annotations[WaveAnnotation]); s != "" {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			bad(WaveAnnotation, strconv.Quote(s)+" is no whole number")
		}
		p.wave = n
	}
	for _, word := range words(annotations[HookAnnotation]) {
		switch phase := Phase(word); phase {
		case PreSync, Sync, PostSync, SyncFail:
			p.phases = append(p.phases, phase)
		case "Skip":
			p.skip = true
		default:
			bad(HookAnnotation, strconv.Quote(word)+" is none of PreSync, Sync, PostSync, SyncFail, Skip")
		}
	}
	slices.SortFunc(p.phases, func(a, b Phase) int { return rank(a) - rank(b) })
	p.phases = slices.Compact(p.phases)
	for _, word := range words(annotations[HookDeletePolicyAnnotation]) {
		switch word {
		case "HookSucceeded":
			p.whenSucceeded = true
		case "HookFailed":
			p.whenFailed = true
		case "BeforeHookCreation":
		default:
			bad(HookDeletePolicyAnnotation, strconv.Quote(word)+" is none of HookSucceeded, HookFailed, BeforeHookCreation")
		}
	}
	if p.isHook() && holdsData(RefOf(o)) && RefOf(o).Kind != "Secret" {
		bad(HookAnnotation, "a hook is deleted before it is made again, and deleting a "+o.GetKind()+" loses data")
	}
	return p, faults
}

// words splits a list with commas.
func words(v any) []string {
	var all []string
	for _, w := range strings.Split(text(v), ",") {
		if w = strings.TrimSpace(w); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// rank is the place of a phase among the phases.
func rank(p Phase) int { return slices.Index([]Phase{PreSync, Sync, PostSync, SyncFail}, p) }
