package render

import "jr2.dev/jr2/config"

// harnessFile is harness.json: what a Harness must know of the models' endpoints. The provider's key is not in it: it is held.
type harnessFile struct {
	Provider *harnessProvider          `json:"provider,omitempty"`
	Catalog  map[string]config.Catalog `json:"catalog,omitempty"`
}

type harnessProvider struct {
	ID            string                        `json:"id"`
	API           string                        `json:"api"`
	BaseURL       string                        `json:"baseUrl"`
	ContextWindow int64                         `json:"contextWindow,omitempty"`
	MaxTokens     int64                         `json:"maxTokens,omitempty"`
	Models        map[string]config.ModelLimits `json:"models,omitempty"`
}

func harnessJSON(in Input) string {
	file := harnessFile{Catalog: in.Instance.Harness.Catalog}
	if p := in.Instance.Harness.Provider; p != nil {
		file.Provider = &harnessProvider{p.ID, p.API, p.BaseURL, p.ContextWindow, p.MaxTokens, p.Models}
	}
	return jsonText(file)
}

// harnessLiterals are the values of harness.env that stand in the configuration. They travel in a Secret.
func harnessLiterals(in Input) map[string]config.Secret {
	literals := map[string]config.Secret{}
	for _, e := range in.Instance.Harness.Env {
		if e.ValueFrom == nil && e.Value.Present() {
			literals[e.Name] = e.Value
		}
	}
	return literals
}
