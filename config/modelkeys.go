package config

import (
	"slices"
	"strings"
)

// modelKeys is what the agent runtime's catalog of providers knows: the environment variable of a key, the provider, and the host
// that the key goes to by default ("" where a provider has more than one). It is a snapshot of that catalog, one entry a line.
const modelKeys = `
ANTHROPIC_API_KEY anthropic api.anthropic.com
ANTHROPIC_AUTH_TOKEN anthropic api.anthropic.com
ANTHROPIC_OAUTH_TOKEN anthropic api.anthropic.com
OPENAI_API_KEY openai api.openai.com
GEMINI_API_KEY google generativelanguage.googleapis.com
OPENROUTER_API_KEY openrouter openrouter.ai
MISTRAL_API_KEY mistral api.mistral.ai
GROQ_API_KEY groq api.groq.com
DEEPSEEK_API_KEY deepseek api.deepseek.com
XAI_API_KEY xai api.x.ai
CEREBRAS_API_KEY cerebras api.cerebras.ai
TOGETHER_API_KEY together api.together.ai
FIREWORKS_API_KEY fireworks api.fireworks.ai
HF_TOKEN huggingface router.huggingface.co
NVIDIA_API_KEY nvidia integrate.api.nvidia.com
AI_GATEWAY_API_KEY vercel-ai-gateway ai-gateway.vercel.sh
GOOGLE_CLOUD_API_KEY google-vertex
AWS_BEARER_TOKEN_BEDROCK amazon-bedrock
AZURE_OPENAI_API_KEY azure-openai-responses
CLOUDFLARE_API_KEY cloudflare-workers-ai
CLOUDFLARE_API_KEY cloudflare-ai-gateway
MOONSHOT_API_KEY moonshotai
MOONSHOT_API_KEY moonshotai-cn
`

// otherProviders are those of the same catalog whose keys are not among the known ones, or which have none.
const otherProviders = `ant-ling baseten github-copilot google-antigravity google-gemini-cli kimi-coding minimax minimax-cn openai-codex opencode opencode-go
	qwen-token-plan qwen-token-plan-cn qwen-token-plan-individual radius xiaomi xiaomi-token-plan-ams xiaomi-token-plan-cn xiaomi-token-plan-sgp zai zai-coding-cn`

// knownProvider says whether the agent runtime's catalog has a provider.
func knownProvider(id string) bool {
	return slices.Contains(strings.Fields(otherProviders), id) || slices.ContainsFunc(ModelKeys(), func(key ModelKey) bool { return key.Provider == id })
}

// A ModelKey is an environment variable that holds the key of a provider of the catalog.
type ModelKey struct {
	Env      string
	Provider string
	// Host is where the key goes by default, on port 443; empty when there is no single such host.
	Host string
}

// LookupModelKey finds a variable among the known model keys; the first entry, when several providers read it.
func LookupModelKey(env string) (ModelKey, bool) {
	for _, key := range ModelKeys() {
		if key.Env == env {
			return key, true
		}
	}
	return ModelKey{}, false
}

// ModelKeys lists the known model keys, once for each provider that reads one.
func ModelKeys() []ModelKey {
	var keys []ModelKey
	for line := range strings.Lines(modelKeys) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		key := ModelKey{Env: words[0], Provider: words[1]}
		if len(words) > 2 {
			key.Host = words[2]
		}
		keys = append(keys, key)
	}
	return keys
}
