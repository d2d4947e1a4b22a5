package preflight

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"jr2.dev/jr2/internal/seed"
)

// aboutModel is how endpoints that answer with a plain "bad request" speak of a model that they do not have.
var aboutModel = regexp.MustCompile(`(?i)model.{0,80}(not found|not exist|no such|unknown|invalid|not a valid|not supported)|(unknown|invalid|no such) model`)

// judgeModel says what is wrong with an answer; nil when an Agent can work with it.
func judgeModel(model Model, answer modelAnswer) *Finding {
	good := answer.Status >= 200 && answer.Status <= 299
	if good && answer.Tool {
		return nil
	}
	f := &Finding{Severity: Refuse, Object: "model " + model.Name}
	if !model.Own {
		f.Severity = Warn
	}
	said := fmt.Sprintf("HTTP %d: %s", answer.Status, answer.Text)
	lists := answer.ListStatus >= 200 && answer.ListStatus <= 299
	var what string
	switch {
	case answer.Status == 0 && lists:
		f.Severity, f.Code, what, said = Warn, CodeModelBusy, "gives no answer in time", answer.Error
		f.Fix = "see whether it still loads, and converge again"
	case answer.Status == 0:
		f.Code, what, said = CodeModelUnreachable, "can't be reached from a pod", answer.Error
		f.Fix = reach(model)
	case good:
		f.Code, what, said = CodeModelNoTools, "answers and calls no tool", answer.Text
		f.Fix = "Agents work by tools: turn tool calls on where it is served, or name a model that has them"
	case answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden:
		f.Code, what, f.Fix = CodeModelDenied, "is denied", keyFix(model)
	case answer.Status == http.StatusTooManyRequests || answer.Status >= 500:
		f.Severity, f.Code, what = Warn, CodeModelBusy, "is not served now"
		f.Fix = "see what its endpoint says, and converge again"
	case unknownModel(answer, lists):
		f.Code, what, f.Fix = CodeModelUnknown, "is not known", idFix(model, answer)
	default:
		f.Code, what, f.Fix = CodeModelRefused, "refuses what an Agent asks", "check the base URL, "+model.BaseURL+", and that it speaks "+model.API
	}
	f.Message = fmt.Sprintf("model %q %s at %s (%s) — %s", model.Name, what, model.BaseURL, strings.TrimSuffix(said, "."), f.Fix)
	return f
}

// unknownModel tells "no such model" from "no such path": where the list of models is not there either, the path is wrong.
func unknownModel(answer modelAnswer, lists bool) bool {
	if lists && answer.Listed > 0 && !answer.Found {
		return true
	}
	if answer.Status == http.StatusNotFound {
		return lists || aboutModel.MatchString(answer.Text)
	}
	return aboutModel.MatchString(answer.Text)
}

// reach is the source document's advice; for an address of the pod itself, the reason why it can't work.
func reach(model Model) string {
	base, err := url.Parse(model.BaseURL)
	if err != nil {
		return seed.ModelReach
	}
	address, err := netip.ParseAddr(base.Hostname())
	if base.Hostname() == "localhost" || err == nil && (address.IsLoopback() || address.IsUnspecified()) {
		return base.Hostname() + " is the pod itself there. " + seed.ModelReach
	}
	return seed.ModelReach
}

func idFix(model Model, answer modelAnswer) string {
	fix := fmt.Sprintf("name the model exactly as its endpoint does, after %q", strings.TrimSuffix(model.Name, model.ID))
	if len(answer.Models) == 0 {
		return fix
	}
	lists := strings.Join(answer.Models, ", ")
	if answer.Listed > len(answer.Models) {
		lists += ", …"
	}
	return fix + ": it lists " + lists
}

func keyFix(model Model) string {
	if model.Own {
		return "set harness.provider.apiKey"
	}
	return "give the Instance the key of its provider by `secrets`: " + strings.Join(model.Keys, " or ")
}
