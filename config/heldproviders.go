package config

import (
	"fmt"
	"slices"
	"strings"
)

// checkProviderKey holds the key of a custom provider to the same rules as any held secret.
func checkProviderKey(p *problems, bound binding) {
	provider := p.inst.Harness.Provider
	if provider == nil || !provider.APIKey.Present() {
		return
	}
	checkValue(p, "harness.provider.apiKey", provider.APIKey)
	const path, hint = "harness.provider.baseUrl", "an https url, because apiKey is sent there (ADR-0059)"
	if why := baseURLProblem(provider.BaseURL); why != "" {
		p.rule("R7", hintProvider, path, "%s", why)
		return
	}
	host, err := ParseHost(provider.BaseURL)
	switch {
	case provider.BaseURL == "":
		p.rule("R7", hint, path, "is missing, so apiKey has nowhere to go")
	case !isHTTPS(provider.BaseURL):
		p.rule("R7", hint, path, "%q is no https url, and apiKey would go there in the clear", clip(RedactURL(provider.BaseURL)))
	case err != nil:
		p.rule("R7", hint, path, "%v", err)
	default:
		bound.take(p, "harness.provider.apiKey", ProviderKeyName, []HostPort{host}, defaultHeaders())
	}
}

// checkCatalogReach wants gateways of the catalog to be ones that a key may be sent to, for providers that the agent runtime knows.
func checkCatalogReach(p *problems) {
	harness := p.inst.Harness
	for _, id := range sortedKeys(harness.Catalog) {
		path, base := joinPath("harness.catalog", id), harness.Catalog[id].BaseURL
		switch why := baseURLProblem(base); {
		case why != "":
			p.rule("R7", hintCatalog, path+".baseUrl", "%s", why)
		case base == "":
			p.rule("R7", hintCatalog, path+".baseUrl", "is missing")
		case !isHTTPS(base):
			p.rule("R7", "an https url, because the provider's key is sent there (ADR-0059)", path+".baseUrl", "%q is no https url", clip(RedactURL(base)))
		}
		switch {
		case harness.Provider != nil && harness.Provider.ID == id:
			p.rule("R8", "remove the entry, and set harness.provider.baseUrl", path, "is the id of harness.provider, which has a baseUrl of its own")
		case !knownProvider(id):
			p.rule("R8", "name a provider that the agent runtime knows, such as anthropic or openai, or describe another one in harness.provider", path,
				"%q is no provider that the agent runtime knows", clip(id))
		}
	}
}

// checkModelHosts wants the key of a model to be allowed where the Agents that name the model call: their requests would carry the stand-in
// otherwise, and be turned away. A key that names no hosts is bound to its provider's own and asks nothing here.
func checkModelHosts(p *problems) {
	for i, held := range p.inst.Secrets {
		allowed, _, err := held.Bindings()
		if err != nil || len(held.Hosts) == 0 {
			continue
		}
		told := map[HostPort]bool{}
		for _, call := range p.inst.modelCalls(held.Name) {
			if slices.Contains(allowed, call.host) || told[call.host] {
				continue
			}
			told[call.host] = true
			p.rule("R9", fmt.Sprintf("hosts: add %q (ADR-0059)", call.host.entry()), fmt.Sprintf("secrets[%d].hosts", i),
				"leaves out %s, where Agent %q of workflow %q sends %s", call.host, clip(call.agent.Name), clip(call.workflow), held.Name)
		}
	}
}

// A modelCall is an endpoint to which an Agent sends the key of its model's provider.
type modelCall struct {
	workflow string
	agent    Agent
	host     HostPort
}

// modelCalls are those that carry a model key, in walk order: to the gateway that harness.catalog gives the provider, else to its own host. A provider
// with neither is told nothing of, nor is the configuration's own, which has a key of its own.
func (i *Instance) modelCalls(env string) []modelCall {
	var calls []modelCall
	for _, wf := range i.Workflows {
		for _, agent := range wf.Agents {
			provider, _, _ := strings.Cut(agent.Model, "/")
			if own := i.Harness.Provider; own != nil && own.ID == provider {
				continue
			}
			for _, key := range ModelKeys() {
				if key.Env != env || key.Provider != provider {
					continue
				}
				if host, ok := i.providerHost(key); ok {
					calls = append(calls, modelCall{wf.Name, agent, host})
				}
			}
		}
	}
	return calls
}

func (i *Instance) providerHost(key ModelKey) (HostPort, bool) {
	if gateway, ok := i.Harness.Catalog[key.Provider]; ok && gateway.BaseURL != "" {
		host, err := ParseHost(gateway.BaseURL)
		return host, err == nil
	}
	return HostPort{key.Host, 443}, key.Host != ""
}

// entry spells an endpoint as one writes it in hosts.
func (h HostPort) entry() string {
	if h.Port == 443 && !strings.Contains(h.Host, ":") {
		return h.Host
	}
	return h.String()
}

func isHTTPS(text string) bool {
	_, ok := cutPrefixFold(text, "https://")
	return ok
}
