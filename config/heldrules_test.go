package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
)

// A heldRule is one way to break a rule of held secrets: where it is told and which fix.
type heldRule struct {
	name string // the rule and what breaks it
	inst config.Instance
	path string // empty where nothing is wrong
	says string
	fix  string
}

// TestEachHeldRule breaks each rule in each of its ways, alone: it is told by its name at its field with what to do, and nothing else is.
func TestEachHeldRule(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(ruleNames(), ruleValues(), ruleHosts(), ruleProviders(), ruleReach()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := config.CheckHeldSecrets(&c.inst)
			if c.path == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			var field *config.FieldError
			if !errors.As(err, &field) || len(lines(err)) != 1 {
				t.Fatalf("got %v", err)
			}
			rule, _, _ := strings.Cut(c.name, " ")
			if field.Rule != rule || field.Path != c.path || !strings.Contains(field.Problem, c.says) || !strings.Contains(field.Hint, c.fix) || c.fix == "" {
				t.Errorf("got %s at %s: %s — %s", field.Rule, field.Path, field.Problem, field.Hint)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("a value is shown: %v", err)
			}
		})
	}
}

// Parts of Instances.
func secret(name string, change ...func(*config.HeldSecret)) config.HeldSecret {
	held := config.HeldSecret{Name: name, Value: config.NewSecret("hush-" + name), Hosts: []string{strings.ToLower(strings.ReplaceAll(name, "_", "-")) + ".test"}}
	for _, c := range change {
		c(&held)
	}
	return held
}

func valued(value string) func(*config.HeldSecret) {
	return func(h *config.HeldSecret) { h.Value = config.NewSecret(value) }
}
func boundTo(hosts ...string) func(*config.HeldSecret) {
	return func(h *config.HeldSecret) { h.Hosts = hosts }
}
func inHeaders(headers ...string) func(*config.HeldSecret) {
	return func(h *config.HeldSecret) { h.Headers = headers }
}
func onPaths(paths ...string) func(*config.HeldSecret) {
	return func(h *config.HeldSecret) { h.Paths = paths }
}
func fromSecret(name, key string) func(*config.HeldSecret) {
	return func(h *config.HeldSecret) {
		h.Value, h.ValueFrom = config.Secret{}, &config.SecretKeyRef{Name: name, Key: key}
	}
}

func holding(harness config.Harness, secrets ...config.HeldSecret) config.Instance {
	return config.Instance{Name: "x", Harness: harness, Secrets: secrets}
}
func variable(name, value string) config.Harness {
	return config.Harness{Env: []config.HarnessEnv{{Name: name, Value: config.NewSecret(value)}}}
}
func variableFrom(name, secret, key string) config.Harness {
	return config.Harness{Env: []config.HarnessEnv{{Name: name, ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}}}}}
}
func wholeSecret(name string) config.Harness {
	return config.Harness{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}}
}
func provider(url, key string) config.Harness {
	p := &config.Provider{ID: "corp", API: "openai-completions", BaseURL: url}
	if key != "" {
		p.APIKey = config.NewSecret(key)
	}
	return config.Harness{Provider: p}
}
func catalog(id, url string) config.Harness {
	return config.Harness{Catalog: map[string]config.Catalog{id: {BaseURL: url}}}
}

func ruleNames() []heldRule {
	return []heldRule{
		{"R1 literal", holding(variable("GROQ_API_KEY", "hush")), "harness.env[0].name", "is a model key", `secrets: [{ name: "GROQ_API_KEY", value: process.env.GROQ_API_KEY }]`},
		{"R1 of a Secret", holding(variableFrom("HF_TOKEN", "team", "k")), "harness.env[0].name", "is a model key", `secrets: [{ name: "HF_TOKEN", valueFrom: { secretKeyRef: { name: "team", key: "k" } } }]`},
		{"R1 without a host of its own", holding(variable("AZURE_OPENAI_API_KEY", "hush")), "harness.env[0].name", "is a model key", `hosts: [`},
		{"R2 Kit", holding(config.Harness{}, secret("JR2_X")), "secrets[0].name", "starts with JR2_", "a name that does not start with JR2_"},
		{"R2 proxy", holding(config.Harness{}, secret("HTTPS_PROXY")), "secrets[0].name", "proxy or trust variable", "another name"},
		{"R2 proxy in lower case", holding(config.Harness{}, secret("no_proxy")), "secrets[0].name", "proxy or trust variable", "another name"},
		{"R2 trust", holding(config.Harness{}, secret("GIT_SSL_CAINFO")), "secrets[0].name", "proxy or trust variable", "another name"},
		{"R3 twice", holding(config.Harness{}, secret("A"), secret("A", boundTo("b.test"))), "secrets[1].name", `"A" is held twice`, "remove one of the two"},
		{"R3 in env", holding(variable("A", "other"), secret("A")), "harness.env[0].name", "is held in secrets already", "remove it here"},
		{"R11 proxy", holding(variable("NO_PROXY", "x"), secret("A")), "harness.env[0].name", "which held secrets set themselves", "harness.caBundle"},
		{"R11 beside the provider's key", holding(config.Harness{Env: variable("SSL_CERT_FILE", "x").Env, Provider: provider("https://llm.test", "hush").Provider}),
			"harness.env[0].name", "which held secrets set themselves", "remove it here"},
		{"R11 nothing held", holding(variable("NO_PROXY", "x")), "", "", ""},
	}
}

func ruleValues() []heldRule {
	return []heldRule{
		{"R4 neither", holding(config.Harness{}, secret("A", func(h *config.HeldSecret) { h.Value = config.Secret{} })), "secrets[0]", "neither value nor valueFrom", "in the shell or in .env"},
		{"R4 both", holding(config.Harness{}, secret("A", func(h *config.HeldSecret) { h.ValueFrom = &config.SecretKeyRef{Name: "n", Key: "k"} })), "secrets[0]", "both value and valueFrom", "value or valueFrom"},
		{"R4 empty", holding(config.Harness{}, secret("A", valued(""))), "secrets[0].value", "is empty", "a value"},
		{"R4 leading blank", holding(config.Harness{}, secret("A", valued(" hush"))), "secrets[0].value", "starts or ends with a blank", "off its ends"},
		{"R4 line break", holding(config.Harness{}, secret("A", valued("hush\n"))), "secrets[0].value", "starts or ends with a blank", "off its ends"},
		{"R4 control character", holding(config.Harness{}, secret("A", valued("hu\x00sh"))), "secrets[0].value", "no printable ASCII", "printable ASCII"},
		{"R4 not ASCII", holding(config.Harness{}, secret("A", valued("hüsh"))), "secrets[0].value", "no printable ASCII", "printable ASCII"},
		{"R4 of the provider", holding(provider("https://llm.test", "hush ")), "harness.provider.apiKey", "starts or ends with a blank", "off its ends"},
		{"R6 upper case", holding(config.Harness{}, secret("A", inHeaders("X-Key"))), "secrets[0].headers[0]", "no header name in lower case", "in lower case"},
		{"R6 no token", holding(config.Harness{}, secret("A", inHeaders("x key"))), "secrets[0].headers[0]", "no header name", "in lower case"},
		{"R6 routes", holding(config.Harness{}, secret("A", inHeaders("x-key", "host"))), "secrets[0].headers[1]", "frames or routes", "names of request headers"},
		{"R6 of a proxy", holding(config.Harness{}, secret("A", inHeaders("proxy-authorization"))), "secrets[0].headers[0]", "frames or routes", "names of request headers"},
		{"R6 twice", holding(config.Harness{}, secret("A", inHeaders("x-key", "x-other", "x-key"))), "secrets[0].headers[2]", "is there twice", "each once"},
		{"R12 relative", holding(config.Harness{}, secret("A", onPaths("/v1", "v2"))), "secrets[0].paths[1]", `does not start with "/"`, "plain prefixes"},
		{"R12 upward", holding(config.Harness{}, secret("A", onPaths("/v1/../x"))), "secrets[0].paths[0]", `".."`, "plain prefixes"},
		{"R12 parameter", holding(config.Harness{}, secret("A", onPaths("/v1;x"))), "secrets[0].paths[0]", `";"`, "plain prefixes"},
		{"R12 backslash", holding(config.Harness{}, secret("A", onPaths(`/v1\x`))), "secrets[0].paths[0]", `"\\"`, "plain prefixes"},
		{"R12 encoded dot", holding(config.Harness{}, secret("A", onPaths("/v1/%2E/x"))), "secrets[0].paths[0]", `"%2e"`, "plain prefixes"},
		{"R12 encoded slash", holding(config.Harness{}, secret("A", onPaths("/v1%2fx"))), "secrets[0].paths[0]", `"%2f"`, "plain prefixes"},
		{"R12 encoded backslash", holding(config.Harness{}, secret("A", onPaths("/v1%5Cx"))), "secrets[0].paths[0]", `"%5c"`, "plain prefixes"},
	}
}

func ruleHosts() []heldRule {
	return []heldRule{
		{"R5 none", holding(config.Harness{}, secret("A", boundTo())), "secrets[0].hosts", "has no host of its own", `hosts: ["host"`},
		{"R5 a key with several hosts", holding(config.Harness{}, secret("MOONSHOT_API_KEY", boundTo())), "secrets[0].hosts", "has no host of its own", `hosts: ["host"`},
		{"R5 a key with one host", holding(config.Harness{}, secret("GROQ_API_KEY", boundTo())), "", "", ""},
		{"R5 wildcard", holding(config.Harness{}, secret("A", boundTo("a.test", "*.test"))), "secrets[0].hosts[1]", `"*.test" is no host`, "without wildcards"},
		{"R5 http", holding(config.Harness{}, secret("A", boundTo("http://a.test"))), "secrets[0].hosts[0]", "a scheme other than https", "https://"},
		{"R5 one place twice", holding(config.Harness{}, secret("A"), secret("B", boundTo("A.test.:443"))), "secrets[1].hosts", `gets "A" already in the header "authorization"`, `give "A" or "B" other hosts`},
		{"R5 other headers", holding(config.Harness{}, secret("A"), secret("B", boundTo("a.test"), inHeaders("x-b"))), "", "", ""},
		{"R5 other ports", holding(config.Harness{}, secret("A"), secret("B", boundTo("a.test:8443"))), "", "", ""},
		{"R5 the provider's place", holding(provider("https://a.test/v1", "hush"), secret("A")), "harness.provider.apiKey", `a.test:443 gets "A" already`, "other hosts"},
	}
}

func ruleProviders() []heldRule {
	both := provider("https://llm.test", "")
	both.Catalog = map[string]config.Catalog{"corp": {BaseURL: "https://gw.test"}}
	return []heldRule{
		{"R7 in the clear", holding(provider("http://llm.test", "hush")), "harness.provider.baseUrl", "in the clear", "https"},
		{"R7 no url", holding(provider("ftp://llm.test", "hush")), "harness.provider.baseUrl", "is no https or http url", "provider: {"},
		{"R7 no host", holding(provider("https://-llm.test", "hush")), "harness.provider.baseUrl", "is no host", "https"},
		{"R7 of the catalog, no url", holding(catalog("openai", "gw.test")), "harness.catalog.openai.baseUrl", "is no https or http url", "baseUrl"},
		{"R7 nowhere", holding(provider("", "hush")), "harness.provider.baseUrl", "is missing", "https"},
		{"R7 without a key", holding(provider("http://llm.test", "")), "", "", ""},
		{"R7 of the catalog", holding(catalog("openai", "http://gw.test")), "harness.catalog.openai.baseUrl", "is no https url", "https"},
		{"R7 of the catalog, nowhere", holding(catalog("openai", "")), "harness.catalog.openai.baseUrl", "is missing", "baseUrl"},
		{"R8 unknown", holding(catalog("opennai", "https://gw.test")), "harness.catalog.opennai", "no provider that the agent runtime knows", "harness.provider"},
		{"R8 its own provider", holding(both), "harness.catalog.corp", "a baseUrl of its own", "harness.provider.baseUrl"},
		{"R8 known without a key of ours", holding(catalog("github-copilot", "https://gw.test")), "", "", ""},
		{"R9 left out", calling("anthropic/opus", config.Harness{}, secret("ANTHROPIC_API_KEY")), "secrets[0].hosts",
			`leaves out api.anthropic.com:443, where Agent "author" of workflow "review" sends ANTHROPIC_API_KEY`, `hosts: add "api.anthropic.com"`},
		{"R9 another port", calling("openai/gpt", config.Harness{}, secret("OPENAI_API_KEY", boundTo("api.openai.com:8443"))), "secrets[0].hosts", "leaves out api.openai.com:443", `add "api.openai.com"`},
		{"R9 a gateway left out", calling("anthropic/opus", catalog("anthropic", "https://gw.test:8443/v1"), secret("ANTHROPIC_API_KEY", boundTo("api.anthropic.com"))), "secrets[0].hosts",
			"leaves out gw.test:8443", `add "gw.test:8443"`},
		{"R9 of a provider with several hosts", calling("moonshotai-cn/k2", catalog("moonshotai-cn", "https://gw.test"), secret("MOONSHOT_API_KEY")), "secrets[0].hosts", "leaves out gw.test:443", `add "gw.test"`},
		{"R9 named", calling("anthropic/opus", config.Harness{}, secret("ANTHROPIC_API_KEY", boundTo("x.test", "https://API.anthropic.com/v1"))), "", "", ""},
		{"R9 the gateway named", calling("anthropic/opus", catalog("anthropic", "https://gw.test"), secret("ANTHROPIC_API_KEY", boundTo("gw.test"))), "", "", ""},
		{"R9 no hosts", calling("anthropic/opus", config.Harness{}, secret("ANTHROPIC_API_KEY", boundTo())), "", "", ""},
		{"R9 no Agent of it", calling("openai/gpt", config.Harness{}, secret("ANTHROPIC_API_KEY")), "", "", ""},
		{"R9 its own provider", calling("corp/gpt", provider("https://llm.test", ""), secret("OPENAI_API_KEY")), "", "", ""},
		{"R9 nobody knows where", calling("azure-openai-responses/gpt", config.Harness{}, secret("AZURE_OPENAI_API_KEY")), "", "", ""},
		{"R9 no key of a model", calling("anthropic/opus", config.Harness{}, secret("TRACKER")), "", "", ""},
	}
}

// calling is an Instance with an Agent that names a model.
func calling(model string, harness config.Harness, secrets ...config.HeldSecret) config.Instance {
	inst := holding(harness, secrets...)
	inst.Workflows = []config.Workflow{{Name: "review", Agents: []config.Agent{{Name: "author", Model: model, Access: config.AccessNone}, {Name: "critic", Model: model, Access: config.AccessNone}}}}
	return inst
}

func ruleReach() []heldRule {
	theirs := secret("A", fromSecret("team", "k"))
	kitEnv := variableFrom("X", "jr2-held-tls", "k")
	return []heldRule{
		{"R13 literal", holding(variable("X", "hush-A"), secret("A")), "harness.env[0].value", "is the value of secrets[0]", "remove it here"},
		{"R13 the provider's literal", holding(config.Harness{Env: variable("X", "hush").Env, Provider: provider("https://llm.test", "hush").Provider}), "harness.env[0].value", "is the value of harness.provider.apiKey", "remove it here"},
		{"R13 key", holding(variableFrom("X", "team", "k"), theirs), "harness.env[0].valueFrom.secretKeyRef", "holds the value of secrets[0]", "a Secret of its own"},
		{"R13 another key", holding(variableFrom("X", "team", "other"), theirs), "", "", ""},
		{"R13 whole Secret", holding(wholeSecret("team"), theirs), "harness.envFrom[0].secretRef", "holds the value of secrets[0]", "a Secret of its own"},
		{"R13 another Secret", holding(wholeSecret("other"), theirs), "", "", ""},
		{"R13 Kit Secret", holding(wholeSecret("jr2-instance")), "harness.envFrom[0].secretRef", "is a Secret of the Kit", "a Secret of your own"},
		{"R13 Kit Secret in a variable", holding(kitEnv), "harness.env[0].valueFrom.secretKeyRef", "is a Secret of the Kit", "a Secret of your own"},
	}
}

// TestAllHeldRulesAtOnce: one secret with several faults, and faults all over, are told together in the order of the sections.
func TestAllHeldRulesAtOnce(t *testing.T) {
	t.Parallel()
	inst := calling("anthropic/opus", config.Harness{
		Provider: provider("http://llm.test", "hush ").Provider, Catalog: map[string]config.Catalog{"nobody": {BaseURL: "http://gw.test"}},
		Env:     append(variable("GROQ_API_KEY", "hush-ANTHROPIC_API_KEY").Env, variable("NO_PROXY", "x").Env...),
		EnvFrom: append(wholeSecret("jr2-held-ca").EnvFrom, wholeSecret("team").EnvFrom...),
	}, secret("JR2_A", valued(" "), boundTo("*"), inHeaders("Host", "host"), onPaths("v1", "/..")), secret("ANTHROPIC_API_KEY"), secret("C", fromSecret("team", "k"), boundTo()))
	var got []string
	for _, one := range config.CheckHeldSecrets(&inst).(interface{ Unwrap() []error }).Unwrap() {
		var field *config.FieldError
		errors.As(one, &field)
		got = append(got, field.Rule+" "+field.Path)
	}
	want := []string{
		"R2 secrets[0].name", "R4 secrets[0].value", "R5 secrets[0].hosts[0]", "R6 secrets[0].headers[0]", "R6 secrets[0].headers[1]", "R12 secrets[0].paths[0]", "R12 secrets[0].paths[1]",
		"R9 secrets[1].hosts", "R5 secrets[2].hosts", "R4 harness.provider.apiKey", "R7 harness.provider.baseUrl", "R7 harness.catalog.nobody.baseUrl", "R8 harness.catalog.nobody",
		"R1 harness.env[0].name", "R13 harness.env[0].value", "R11 harness.env[1].name", "R13 harness.envFrom[0].secretRef", "R13 harness.envFrom[1].secretRef",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
