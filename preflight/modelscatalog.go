package preflight

import (
	"slices"
	"strings"

	"jr2.dev/jr2/config"
)

// Wire protocols that a probe speaks, as harness.provider.api names them.
const (
	wireCompletions = "openai-completions"
	wireResponses   = "openai-responses"
	wireMessages    = "anthropic-messages"
)

// modelCatalog is where the catalog's providers are asked, one a line: id, wire protocol, base URL. The hosts are those of config.ModelKeys; the
// paths are the providers' own documentation's. Those that are not here need more than a URL and a key.
const modelCatalog = `
anthropic anthropic-messages https://api.anthropic.com
openai openai-responses https://api.openai.com/v1
openrouter openai-completions https://openrouter.ai/api/v1
mistral openai-completions https://api.mistral.ai/v1
groq openai-completions https://api.groq.com/openai/v1
deepseek openai-completions https://api.deepseek.com
xai openai-completions https://api.x.ai/v1
cerebras openai-completions https://api.cerebras.ai/v1
together openai-completions https://api.together.ai/v1
fireworks openai-completions https://api.fireworks.ai/inference/v1
huggingface openai-completions https://router.huggingface.co/v1
nvidia openai-completions https://integrate.api.nvidia.com/v1
vercel-ai-gateway openai-completions https://ai-gateway.vercel.sh/v1
`

// A Model is one that Agents name, as it is asked.
type Model struct {
	// Name is "<provider>/<model>", as Agents name it.
	Name string
	// ID is the name by which the endpoint knows it.
	ID string
	// API is the wire protocol: "openai-completions", "openai-responses" or "anthropic-messages".
	API string
	// BaseURL is what the paths of the protocol follow.
	BaseURL string
	// Keys are environment variables of a Harness, of which the first that is set is sent as the key.
	Keys []string
	// Own says that it is a model of the configuration's own provider, and not of one of the catalog.
	Own bool
}

// ModelsOf lists the distinct models that the Agents of an Instance name, in walk order, as they are to be asked, and a Note for each that nobody
// here knows how to ask.
func ModelsOf(inst *config.Instance) ([]Model, []Finding) {
	var models []Model
	var unasked []Finding
	for _, name := range inst.Models() {
		model, why := modelOf(inst.Harness, name)
		if why != "" {
			unasked = append(unasked, unprobed(Note, name, why))
			continue
		}
		models = append(models, model)
	}
	return models, unasked
}

func modelOf(harness config.Harness, name string) (model Model, why string) {
	if own := harness.Provider; own != nil && strings.HasPrefix(name, own.ID+"/") {
		model := Model{Name: name, ID: strings.TrimPrefix(name, own.ID+"/"), API: own.API, BaseURL: own.BaseURL, Keys: []string{config.ProviderKeyName}, Own: true}
		if !slices.Contains([]string{wireCompletions, wireResponses, wireMessages}, own.API) {
			return model, "a probe does not speak " + own.API
		}
		return model, ""
	}
	provider, id, _ := strings.Cut(name, "/")
	for line := range strings.Lines(modelCatalog) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != provider || id == "" {
			continue
		}
		model := Model{Name: name, ID: id, API: words[1], BaseURL: words[2]}
		if gateway, ok := harness.Catalog[provider]; ok && gateway.BaseURL != "" {
			model.BaseURL = gateway.BaseURL
		}
		for _, key := range config.ModelKeys() {
			if key.Provider == provider {
				model.Keys = append(model.Keys, key.Env)
			}
		}
		return model, ""
	}
	return Model{}, "a probe does not know how to ask its provider"
}

func unprobed(severity Severity, name, why string) Finding {
	return Finding{Severity: severity, Code: CodeModelsUnprobed, Object: "model " + name, Message: "model \"" + name + "\" was not asked: " + why}
}
