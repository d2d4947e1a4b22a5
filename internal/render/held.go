package render

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// Holds says that secrets are held, so that their hosts need certificates.
func Holds(in Input) bool { return len(heldSecrets(in)) > 0 }

// heldSecrets are the secrets of the configuration, then the provider's key, which is held like one of them.
func heldSecrets(in Input) []config.HeldSecret {
	held := append([]config.HeldSecret(nil), in.Instance.Secrets...)
	if p := in.Instance.Harness.Provider; p != nil && p.APIKey.Present() {
		held = append(held, config.HeldSecret{Name: config.ProviderKeyName, Value: p.APIKey, Hosts: []string{p.BaseURL}})
	}
	return held
}

// valueOf names the Secret and the key that hold the value: the user's, or one of the Kit's for a value that stands in the configuration.
func valueOf(held config.HeldSecret) config.SecretKeyRef {
	if held.ValueFrom != nil {
		return *held.ValueFrom
	}
	return config.SecretKeyRef{Name: names.HeldSecrets, Key: held.Name}
}

// A Binding says of a held secret what may be told of it.
type Binding struct {
	Name string
	// Hosts are where its value may go, each "host:port".
	Hosts []string
	// Source says in words where the value lies.
	Source string
}

// Bindings lists the held secrets.
func Bindings(in Input) []Binding {
	var all []Binding
	for _, held := range heldSecrets(in) {
		binding := Binding{Name: held.Name, Source: "the configuration"}
		if held.ValueFrom != nil {
			binding.Source = fmt.Sprintf("key %q of Secret %s", held.ValueFrom.Key, held.ValueFrom.Name)
		}
		endpoints, _, _ := held.Bindings() // that they read is checked before
		for _, endpoint := range endpoints {
			binding.Hosts = append(binding.Hosts, endpoint.String())
		}
		all = append(all, binding)
	}
	return all
}

// manifestEntry says where a held secret may go and where its value lies: never the value.
type manifestEntry struct {
	Name    string   `json:"name"`
	StandIn string   `json:"standIn"`
	Hosts   []string `json:"hosts,omitempty"`
	Headers []string `json:"headers"`
	// Paths absent means every path.
	Paths  []string            `json:"paths,omitempty"`
	Secret config.SecretKeyRef `json:"secret"`
}

// heldManifest is held.json.
func heldManifest(in Input) string {
	manifest := struct {
		Secrets []manifestEntry `json:"secrets"`
	}{Secrets: []manifestEntry{}}
	for _, held := range heldSecrets(in) {
		endpoints, headers, _ := held.Bindings() // that they read is checked before
		entry := manifestEntry{Name: held.Name, StandIn: config.StandIn(held.Name), Headers: headers, Paths: held.Paths, Secret: valueOf(held)}
		for _, endpoint := range endpoints {
			entry.Hosts = append(entry.Hosts, endpoint.String())
		}
		manifest.Secrets = append(manifest.Secrets, entry)
	}
	return jsonText(manifest)
}

// jsonText renders a value of our own types, which always marshal.
func jsonText(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// heldLiterals are the values that the configuration itself gives, by name.
func heldLiterals(in Input) map[string]config.Secret {
	literals := map[string]config.Secret{}
	for _, held := range heldSecrets(in) {
		if held.ValueFrom == nil && held.Value.Present() {
			literals[held.Name] = held.Value
		}
	}
	return literals
}

// heldConfig is jr2-held. It is always there, because every Harness pod runs a Custodian.
func heldConfig(in Input) *corev1.ConfigMap {
	return in.configMap(names.HeldConfig, map[string]string{
		names.HeldKey:      heldManifest(in),
		names.BootstrapKey: custodianBootstrap(in),
		names.ScriptKey:    custodianScript,
	})
}

// heldSecretObject is jr2-held-secrets; nil when no literal is held.
func heldSecretObject(in Input) *corev1.Secret {
	literals := heldLiterals(in)
	if len(literals) == 0 {
		return nil
	}
	return in.secret(names.HeldSecrets, literals)
}
