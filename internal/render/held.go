package render

import (
	"encoding/json"
	"net"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// heldSecrets are the secrets of the configuration, then the provider's key, which is held like one of them.
func heldSecrets(in Input) []config.HeldSecret {
	held := append([]config.HeldSecret(nil), in.Instance.Secrets...)
	if p := in.Instance.Harness.Provider; p != nil && p.APIKey.Present() {
		held = append(held, config.HeldSecret{Name: config.ProviderKeyName, Value: p.APIKey, Hosts: []string{hostOf(p.BaseURL)}})
	}
	return held
}

// hostOf gives "host:port" of an https URL, or "" where there is none.
func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// manifestEntry says where a held secret may go and where its value lies: never the value.
type manifestEntry struct {
	Name    string   `json:"name"`
	StandIn string   `json:"standIn"`
	Hosts   []string `json:"hosts,omitempty"`
	Headers []string `json:"headers"`
	// Paths absent means every path.
	Paths  []string      `json:"paths,omitempty"`
	Secret manifestValue `json:"secret"`
}

// manifestValue names the Secret and the key that hold the value.
type manifestValue struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// defaultHeaders are the request headers in which a stand-in is swapped when an entry names none.
func defaultHeaders() []string {
	return []string{"authorization", "x-api-key", "x-goog-api-key", "api-key"}
}

// heldManifest is held.json.
func heldManifest(in Input) string {
	manifest := struct {
		Secrets []manifestEntry `json:"secrets"`
	}{Secrets: []manifestEntry{}}
	for _, held := range heldSecrets(in) {
		entry := manifestEntry{Name: held.Name, StandIn: config.StandIn(held.Name), Hosts: held.Hosts, Headers: held.Headers, Paths: held.Paths,
			Secret: manifestValue{Name: names.HeldSecrets, Key: held.Name}}
		if held.ValueFrom != nil {
			entry.Secret = manifestValue{Name: held.ValueFrom.Name, Key: held.ValueFrom.Key}
		}
		if len(entry.Headers) == 0 {
			entry.Headers = defaultHeaders()
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
		names.BootstrapKey: custodianBootstrap(in.namespace()),
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

// CheckHeld returns a *HeldError when secrets are held, and nil otherwise.
//
// The manifest, the literal values and the stand-ins are rendered. The certificates with which a Custodian opens the connections to
// the bound hosts are not: until they are, the Harness reaches those hosts itself and they see the stand-in instead of the value.
// No value leaks by that; the calls fail. A converge has to say so.
func CheckHeld(in Input) error {
	var names []string
	for _, held := range heldSecrets(in) {
		names = append(names, held.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return &HeldError{Names: names}
}

// HeldError names the held secrets that the Custodian does not swap yet.
type HeldError struct{ Names []string }

func (e *HeldError) Error() string {
	return "secrets are held (" + strings.Join(e.Names, ", ") + "): the Custodian's certificates are not made by this version, so the " +
		"hosts of these secrets see their stand-ins, and calls to them fail"
}
