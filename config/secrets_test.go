package config_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
)

func TestHeldSecretRules(t *testing.T) {
	value := config.NewSecret("hush-hush")
	ref := &config.SecretKeyRef{Name: "team", Key: "k"}
	hosts := []string{"api.test"}
	for name, c := range map[string]struct {
		inst config.Instance
		say  string
	}{
		"fine":            {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts}), ""},
		"known key":       {held(config.HeldSecret{Name: "OPENAI_API_KEY", Value: value}), ""},
		"R2 jr2":          {held(config.HeldSecret{Name: "JR2_X", Value: value, Hosts: hosts}), "secrets[0].name"},
		"R2 proxy":        {held(config.HeldSecret{Name: "HTTPS_PROXY", Value: value, Hosts: hosts}), "proxy or trust"},
		"R3 twice":        {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts}, config.HeldSecret{Name: "A", Value: value, Hosts: []string{"b.test"}}), "secrets[1].name"},
		"R4 neither":      {held(config.HeldSecret{Name: "A", Hosts: hosts}), "neither value nor valueFrom"},
		"R4 both":         {held(config.HeldSecret{Name: "A", Value: value, ValueFrom: ref, Hosts: hosts}), "both value and valueFrom"},
		"R4 empty":        {held(config.HeldSecret{Name: "A", Value: config.NewSecret(""), Hosts: hosts}), "secrets[0].value: is empty"},
		"R4 newline":      {held(config.HeldSecret{Name: "A", Value: config.NewSecret("hush-hush\n"), Hosts: hosts}), "blank"},
		"R4 not ASCII":    {held(config.HeldSecret{Name: "A", Value: config.NewSecret("hush-hüsh"), Hosts: hosts}), "printable ASCII"},
		"R5 no host":      {held(config.HeldSecret{Name: "A", Value: value}), "secrets[0].hosts"},
		"R5 two hosts":    {held(config.HeldSecret{Name: "MOONSHOT_API_KEY", Value: value}), "secrets[0].hosts"},
		"R5 malformed":    {held(config.HeldSecret{Name: "A", Value: value, Hosts: []string{"*.test"}}), "secrets[0].hosts[0]"},
		"R5 same place":   {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts}, config.HeldSecret{Name: "B", Value: value, Hosts: []string{"API.test.:443"}}), "secrets[1].hosts"},
		"other header":    {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts}, config.HeldSecret{Name: "B", Value: value, Hosts: hosts, Headers: []string{"x-b"}}), ""},
		"R6 upper case":   {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts, Headers: []string{"X-Key"}}), "secrets[0].headers[0]"},
		"R6 routing":      {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts, Headers: []string{"x-key", "proxy-auth"}}), "secrets[0].headers[1]"},
		"R6 twice":        {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts, Headers: []string{"x-key", "x-key"}}), "there twice"},
		"R12 relative":    {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts, Paths: []string{"v1"}}), "secrets[0].paths[0]"},
		"R12 encoded":     {held(config.HeldSecret{Name: "A", Value: value, Hosts: hosts, Paths: []string{"/v1", "/a%2E./b"}}), "secrets[0].paths[1]"},
		"R3 in env":       {reach(config.Harness{Env: []config.HarnessEnv{{Name: "A", Value: config.NewSecret("x")}}}), "held in secrets already"},
		"R1 model key":    {reach(config.Harness{Env: []config.HarnessEnv{{Name: "GROQ_API_KEY", Value: config.NewSecret("x")}}}), "model key"},
		"R11 trust":       {reach(config.Harness{Env: []config.HarnessEnv{{Name: "NO_PROXY", Value: config.NewSecret("x")}}}), "harness.env[0].name"},
		"R13 literal":     {reach(config.Harness{Env: []config.HarnessEnv{{Name: "B", Value: value}}}), "secrets[0]"},
		"R13 its Secret":  {reach(config.Harness{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "team"}}}}}), "secrets[1]"},
		"R13 Kit Secret":  {reach(config.Harness{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "jr2-instance"}}}}}), "Secret of the Kit"},
		"R7 plain http":   {reach(config.Harness{Provider: &config.Provider{ID: "p", API: "a", BaseURL: "http://llm.test", APIKey: value}}), "harness.provider.baseUrl"},
		"R7 no key":       {reach(config.Harness{Provider: &config.Provider{ID: "p", API: "a", BaseURL: "http://llm.test"}}), ""},
		"R7 catalog":      {reach(config.Harness{Catalog: map[string]config.Catalog{"openai": {BaseURL: "http://gw.test"}}}), "harness.catalog.openai.baseUrl"},
		"R8 own provider": {reach(config.Harness{Provider: &config.Provider{ID: "p", API: "a"}, Catalog: map[string]config.Catalog{"p": {BaseURL: "https://gw.test"}}}), "harness.catalog.p"},
	} {
		t.Run(name, func(t *testing.T) {
			err := config.CheckHeldSecrets(&c.inst)
			if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v, want %q", err, c.say)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("a value is shown: %v", err)
			}
		})
	}
}

func held(secrets ...config.HeldSecret) config.Instance {
	return config.Instance{Name: "x", Secrets: secrets}
}

// reach is an Instance that holds A (a literal) and B2 (from Secret team).
func reach(harness config.Harness) config.Instance {
	return config.Instance{Name: "x", Harness: harness, Secrets: []config.HeldSecret{
		{Name: "A", Value: config.NewSecret("hush-hush"), Hosts: []string{"a.test"}},
		{Name: "B2", ValueFrom: &config.SecretKeyRef{Name: "team", Key: "k"}, Hosts: []string{"b.test"}},
	}}
}

func TestParseHost(t *testing.T) {
	for entry, want := range map[string]string{
		"API.Test.":                "api.test:443",
		"api.test:8443":            "api.test:8443",
		"https://Api.test/v1?x=1":  "api.test:443",
		"https://api.test:8443/v1": "api.test:8443",
		"[2001:DB8:0::1]:99":       "[2001:db8::1]:99",
		"2001:db8:0:0::1":          "[2001:db8::1]:443",
		"10.0.0.1:80":              "10.0.0.1:80",
		"https://[::1]":            "[::1]:443",
	} {
		got, err := config.ParseHost(entry)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %v %v, want %s", entry, got, err, want)
		}
	}
	for _, entry := range []string{"", "*.test", "u@h.test", "https://u:p@h.test", "http://h.test", "h.test/v1", "h.test:0", "h.test:65536", "h.test:", "[1.2.3.4]:1", "fe80::1%eth0", "h test", "-h", "h..x", "https://"} {
		if got, err := config.ParseHost(entry); err == nil {
			t.Errorf("%q is taken as %v", entry, got)
		}
	}
}
