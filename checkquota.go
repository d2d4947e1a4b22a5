package jr2

import (
	"fmt"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/preflight"
)

// noteWaits tells what a quota has no room for now. A converge waits for it without an end, but for the Secret of its tokens, with which it ends. Each
// object was asked about alone, so a quota that has room for some of them is found when it is full.
func (p *planning) noteWaits(plan *apply.Plan) {
	var words []string
	for _, step := range plan.Steps {
		if word := step.WaitsForQuota(); word != "" {
			words = append(words, word)
		}
	}
	for _, step := range plan.Steps {
		word := step.WaitsForQuota()
		if word == "" {
			continue
		}
		f := preflight.Finding{Severity: preflight.Warn, Code: preflight.CodeQuotaFull, Object: step.Ref.String(), Fix: "raise the quota, or make room in it"}
		what := "would wait for room"
		if mint := p.plan.Mint; mint != nil && mint.Secret == step.Ref {
			f.Severity, what = preflight.Refuse, "would be refused"
		}
		f.Message = fmt.Sprintf("%s %s: %s — %s", f.Object, what, word, f.Fix)
		if fix := preflight.RaiseQuota(step.Ref.Namespace, word, others(words, word)...); fix != "" {
			f.Fix = fix
			f.Message += ": " + fix
		}
		p.note(f)
	}
}

func others(words []string, but string) []string {
	var rest []string
	for _, word := range words {
		if word != but {
			rest = append(rest, word)
		}
	}
	return rest
}
