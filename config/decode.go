package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// Hints: what a section wants, after the dash of a FieldError.
const (
	hintExport     = "export default defineConfig({ … })"
	hintGit        = "git: { credentials?: [{ match, token?, sshKey? }] } (ADR-0051)"
	hintSecrets    = "secrets: [{ name, value or valueFrom: { secretKeyRef: { name, key } }, hosts?, headers?, paths? }] (ADR-0059)"
	hintHarness    = "harness: { provider?, catalog?, env?, envFrom?, caBundle? }"
	hintProvider   = "harness: { provider: { id, api, baseUrl?, apiKey?, contextWindow?, maxTokens?, models? } }"
	hintCatalog    = "harness.catalog: { \"<provider id>\": { baseUrl } }"
	hintSandbox    = "sandbox: { nodeSelector?, tolerations?, resources? }, in the shapes of the pod spec (ADR-0052)"
	hintResources  = "{ limits: { memory?, cpu? } } with quantities above zero, such as \"2Gi\" and \"500m\" (ADR-0060)"
	hintClasses    = "{ control?, sandbox? }, each the name of an existing PriorityClass (ADR-0060)" // as the fixed sentence has it
	hintName       = "name: a DNS label (lower-case letters, digits and \"-\", at most 63), because it becomes a namespace and part of image names"
	hintOperator   = "operator: { manage? }"
	hintPlatforms  = "platforms: docker platform strings, such as [\"linux/amd64\"]"
	hintRegistry   = "the prefix of image names, such as \"registry.example.com/team\""
	hintToleration = "tolerations: [{ key?, operator?, value?, effect?, tolerationSeconds? }], in the shape of the pod spec (ADR-0052)"
)

// decodeConfig makes an Instance out of the default export. With *FieldErrors comes what could be read beside them; the name is empty when nobody
// can say it. nil comes only with an error of another kind.
func decodeConfig(file string, text json.RawMessage) (*Instance, error) {
	var top struct {
		Value any `json:"value"`
	}
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&top); err != nil {
		return nil, fmt.Errorf("%s: the evaluator gave no data: %w", file, err)
	}
	d := &decoder{file: file}
	config := field{d: d, hint: hintExport, value: top.Value, present: true}
	if top.Value == nil {
		config.refuse("has no default export")
		return &Instance{File: file, unread: d.unread}, together(d.errs...)
	}
	config.known(false, "name", "git", "registry", "kitRegistry", "platforms", "sandbox", "priorityClasses", "secrets", "harness", "operator")
	inst := &Instance{
		File:            file,
		Name:            decodeName(config.at("name").hinted(hintName), filepath.Base(filepath.Dir(file))),
		Git:             decodeGit(config.at("git").hinted(hintGit)),
		Registry:        config.at("registry").hinted(hintRegistry).optional(),
		KitRegistry:     config.at("kitRegistry").hinted(hintRegistry).optional(),
		Platforms:       config.at("platforms").hinted(hintPlatforms).strings(),
		Sandbox:         decodeSandbox(config.at("sandbox").hinted(hintSandbox)),
		PriorityClasses: decodePriorityClasses(config.at("priorityClasses").hinted(hintClasses)),
		Secrets:         decodeSecrets(config.at("secrets").hinted(hintSecrets)),
		Harness:         decodeHarness(config.at("harness").hinted(hintHarness)),
		Operator:        decodeOperator(config.at("operator").hinted(hintOperator)),
	}
	inst.Notes, inst.unread = d.notes, d.unread
	return inst, together(d.errs...)
}

// decodeName gives the name of the folder when the configuration names none. One that can't be read must not make it another Instance.
func decodeName(f field, folder string) string {
	switch name := f.optional(); {
	case name != nil:
		return *name
	case f.present || f.echo:
		return ""
	}
	return folder
}

func decodeGit(f field) (git Git) {
	f.known(false, "credentials")
	for _, entry := range f.at("credentials").items() {
		entry.known(true, "match", "token", "sshKey")
		git.Credentials = append(git.Credentials, GitCredential{
			Match: needed(entry.at("match")), Token: filled(entry.at("token")), SSHKey: filled(entry.at("sshKey")),
		})
	}
	return git
}

// needed is a string that must be there and hold something.
func needed(f field) string {
	if !f.present {
		f.refuse("is missing")
	}
	return filled(f)
}

// filled is a string that holds something when it is there.
func filled(f field) string {
	s := f.optional()
	if s == nil {
		return ""
	}
	if *s == "" {
		f.refuse("is empty")
	}
	return *s
}

func decodeSandbox(f field) Sandbox {
	f.known(false, "nodeSelector", "tolerations", "resources")
	out := Sandbox{NodeSelector: f.at("nodeSelector").stringMap()}
	for _, entry := range f.at("tolerations").hinted(hintToleration).items() {
		var toleration corev1.Toleration
		entry.into(&toleration)
		out.Tolerations = append(out.Tolerations, toleration)
	}
	out.Resources = decodeSize(f.at("resources").hinted(hintResources))
	return out
}

// decodeSize reads a Size: { limits: { memory?, cpu? } }.
func decodeSize(f field) (out Limits) {
	entries := f.object()
	if _, found := entries["requests"]; found {
		f.at("requests").refuse("is not stated: every request equals its limit")
	}
	if _, found := entries["requests"]; !found {
		f.known(true, "limits")
	} else {
		f.known(true, "limits", "requests")
	}
	limits := f.at("limits")
	limits.known(true, "memory", "cpu")
	out.Memory = decodeQuantity(limits.at("memory"), ParseMemory)
	out.CPU = decodeQuantity(limits.at("cpu"), ParseCPU)
	return out
}

func decodeQuantity(f field, parse func(any) (int64, error)) *int64 {
	if !f.present {
		return nil
	}
	switch f.value.(type) {
	case string, json.Number:
	default:
		f.want("quantity")
		return nil
	}
	n, err := parse(f.value)
	if err != nil {
		f.refuse("%v", err)
		return nil
	}
	return &n
}

func decodePriorityClasses(f field) PriorityClasses {
	f.known(true, "control", "sandbox")
	class := func(f field) *string {
		if filled(f) == "" {
			return nil
		}
		return f.optional()
	}
	return PriorityClasses{Control: class(f.at("control")), Sandbox: class(f.at("sandbox"))}
}

func decodeSecrets(f field) (out []HeldSecret) {
	for _, entry := range f.items() {
		entry.known(true, "name", "value", "valueFrom", "hosts", "headers", "paths")
		held := HeldSecret{
			Name: needed(entry.at("name")), Value: entry.at("value").secret(),
			Hosts: entry.at("hosts").strings(), Headers: entry.at("headers").strings(), Paths: entry.at("paths").strings(),
		}
		if from := entry.at("valueFrom"); from.present {
			held.ValueFrom = decodeKeyRef(from)
		}
		out = append(out, held)
	}
	return out
}

func decodeKeyRef(from field) *SecretKeyRef {
	right := from.known(true, "secretKeyRef")
	ref := from.at("secretKeyRef")
	if !ref.present {
		if right {
			ref.refuse("is missing")
		}
		from.d.unread = append(from.d.unread, from.path)
		return &SecretKeyRef{}
	}
	ref.known(true, "name", "key")
	return &SecretKeyRef{Name: needed(ref.at("name")), Key: needed(ref.at("key"))}
}

func decodeOperator(f field) Operator {
	f.known(false, "manage")
	return Operator{Manage: f.at("manage").boolean()}
}

func decodeHarness(f field) (out Harness) {
	f.known(false, "provider", "catalog", "env", "envFrom", "caBundle")
	if provider := f.at("provider"); provider.present {
		out.Provider = decodeProvider(provider.hinted(hintProvider))
	}
	catalog := f.at("catalog").hinted(hintCatalog)
	for _, id := range sortedKeys(catalog.object()) {
		entry := catalog.at(id)
		entry.known(true, "baseUrl")
		if out.Catalog == nil {
			out.Catalog = map[string]Catalog{}
		}
		out.Catalog[id] = Catalog{BaseURL: filled(entry.at("baseUrl"))}
	}
	for _, entry := range f.at("env").items() {
		entry.known(true, "name", "value", "valueFrom")
		variable := HarnessEnv{Name: needed(entry.at("name")), Value: entry.at("value").secret()}
		if from := entry.at("valueFrom"); from.present {
			variable.ValueFrom = &corev1.EnvVarSource{}
			from.into(variable.ValueFrom)
		}
		out.Env = append(out.Env, variable)
	}
	for _, entry := range f.at("envFrom").items() {
		var source corev1.EnvFromSource
		entry.into(&source)
		out.EnvFrom = append(out.EnvFrom, source)
	}
	out.CABundle = filled(f.at("caBundle"))
	return out
}

func decodeProvider(f field) *Provider {
	f.known(false, "id", "api", "baseUrl", "apiKey", "contextWindow", "maxTokens", "models")
	out := &Provider{
		ID: needed(f.at("id")), API: needed(f.at("api")), BaseURL: f.at("baseUrl").str(), APIKey: f.at("apiKey").secret(),
		ContextWindow: f.at("contextWindow").count(), MaxTokens: f.at("maxTokens").count(),
	}
	models := f.at("models")
	for _, id := range sortedKeys(models.object()) {
		model := models.at(id)
		model.known(true, "contextWindow", "maxTokens")
		if out.Models == nil {
			out.Models = map[string]ModelLimits{}
		}
		out.Models[id] = ModelLimits{ContextWindow: model.at("contextWindow").count(), MaxTokens: model.at("maxTokens").count()}
	}
	return out
}
