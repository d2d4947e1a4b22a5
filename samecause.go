package jr2

import (
	"regexp"
	"slices"
	"strings"

	"jr2.dev/jr2/preflight"
)

// typedOnce is a command that fails when it is typed again.
var typedOnce = regexp.MustCompile(`^kubectl (-n \S+ )?(create|delete) `)

// sameCause tells once what one command mends, and of which other objects it is true: a class that nobody made is missed by each pod that names it,
// and who types its creation again is refused. The first one stays, which says most, as severely as the severest.
func sameCause(findings []preflight.Finding) []preflight.Finding {
	first := map[string]int{}
	kept := []preflight.Finding{}
	also := map[int][]string{}
	for _, f := range findings {
		at, told := first[f.Fix]
		if !told || !typedOnce.MatchString(f.Fix) {
			first[f.Fix] = len(kept)
			kept = append(kept, f)
			continue
		}
		if f.Severity == preflight.Refuse || f.Severity == preflight.Warn && kept[at].Severity == preflight.Note {
			kept[at].Severity = f.Severity
		}
		if f.Object != kept[at].Object && !slices.Contains(also[at], f.Object) {
			also[at] = append(also[at], f.Object)
		}
	}
	for at, objects := range also {
		kept[at].Message += " (it is the same for " + strings.Join(objects, ", ") + ")"
	}
	return kept
}
