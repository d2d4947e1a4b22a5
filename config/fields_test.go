package config_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

// TestFieldErrors has one case per load-time check of a section: where it is and what is wrong, in the fixed form.
func TestFieldErrors(t *testing.T) {
	for _, c := range []struct{ config, path, problem string }{
		{`name: 3`, "name", "want string, got number"},
		{`name: "My Instance"`, "name", `"My Instance" is no DNS label`},
		{`name: ""`, "name", `"" is no DNS label`},
		{`git: []`, "git", "want object, got list"},
		{`git: { credentials: {} }`, "git.credentials", "want list, got object"},
		{`git: { credentials: [{}] }`, "git.credentials[0].match", "is missing"},
		{`git: { credentials: [{ match: "*" }, { match: "" }] }`, "git.credentials[1].match", "is empty"},
		{`git: { credentials: [{ match: "*", token: "" }] }`, "git.credentials[0].token", "is empty"},
		{`git: { credentials: [{ match: "*", token: true }] }`, "git.credentials[0].token", "want string, got boolean"},
		{`git: { credentials: [{ match: "*", password: "x" }] }`, "git.credentials[0]", `unrecognized key "password"`},
		{`git: { credentials: [{ match: "*", token: "not a name" }] }`, "git.credentials[0].token", `is no name of an environment variable — the name of one is wanted, never the token`},
		{`registry: 1`, "registry", "want string, got number"},
		{`registry: "https://r.test/x"`, "registry", `"https://r.test/x" is no prefix of image names: no scheme, no blanks, no digest`},
		{`kitRegistry: null`, "kitRegistry", "want string, got null"},
		{`platforms: "linux/amd64"`, "platforms", "want list, got string"},
		{`platforms: ["linux/amd64", 1]`, "platforms[1]", "want string, got number"},
		{`sandbox: null`, "sandbox", "want object, got null"},
		{`sandbox: { nodeSelector: { pool: true } }`, "sandbox.nodeSelector.pool", "want string, got boolean"},
		{`sandbox: { nodeSelector: { tier: 1, app: "web" } }`, "sandbox.nodeSelector.tier", "want string, got number"},
		{`sandbox: { nodeSelector: { "a.b/c": () => 1 } }`, `sandbox.nodeSelector["a.b/c"]`, "want string, got function"},
		{`sandbox: { nodeSelector: ["pool"] }`, "sandbox.nodeSelector", "want object, got list"},
		{`sandbox: { nodeSelector: { pool: "no good" } }`, "sandbox.nodeSelector.pool", ""},
		{`sandbox: { tolerations: {} }`, "sandbox.tolerations", "want list, got object"},
		{`sandbox: { tolerations: [{ key: true }] }`, "sandbox.tolerations[0].key", "want string, got boolean"},
		{`sandbox: { tolerations: [{ key: "a", tolerationSeconds: "60" }] }`, "sandbox.tolerations[0].tolerationSeconds", "want number, got string"},
		{`sandbox: { tolerations: [{ key: "a", efect: "NoSchedule" }] }`, "sandbox.tolerations[0]", `unrecognized key "efect"`},
		{`sandbox: { tolerations: [{ key: "a", effect: "Never" }] }`, "sandbox.tolerations[0].effect", `"Never" is none: NoSchedule, PreferNoSchedule or NoExecute`},
		{`sandbox: { tolerations: [{ value: "x" }] }`, "sandbox.tolerations[0].operator", "must be Exists when there is no key"},
		{`sandbox: { resources: [] }`, "sandbox.resources", "want object, got list"},
		{`sandbox: { resources: { requests: { cpu: 1 } } }`, "sandbox.resources.requests", "is not stated: every request equals its limit"},
		{`sandbox: { resources: { memory: 1 } }`, "sandbox.resources", `unrecognized key "memory"`},
		{`sandbox: { resources: { limits: { disk: 1 } } }`, "sandbox.resources.limits", `unrecognized key "disk"`},
		{`sandbox: { resources: { limits: { memory: "0" } } }`, "sandbox.resources.limits.memory", "must be more than zero"},
		{`sandbox: { resources: { limits: { memory: true } } }`, "sandbox.resources.limits.memory", "want quantity, got boolean"},
		{`sandbox: { resources: { limits: { cpu: NaN } } }`, "sandbox.resources.limits.cpu", "want quantity, got NaN"},
		{`secrets: {}`, "secrets", "want list, got object"},
		{`secrets: [{ name: "lower" }]`, "secrets[0].name", `"lower" is none: upper-case letters, digits and "_", not starting with a digit`},
		{`secrets: [{ name: "A", value: 5 }]`, "secrets[0].value", "want string, got number"},
		{`secrets: [{ name: "A", value: "x", valueFrom: { secretKeyRef: { name: "n", key: "k" } } }]`, "secrets[0]", "has both value and valueFrom"},
		{`secrets: [{ name: "A", valueFrom: { secretKeyRef: { name: "n" } } }]`, "secrets[0].valueFrom.secretKeyRef.key", "is missing"},
		{`secrets: [{ name: "A", valueFrom: { configMapKeyRef: {} } }]`, "secrets[0].valueFrom", `unrecognized key "configMapKeyRef"`},
		{`secrets: [{ name: "A", host: "h" }]`, "secrets[0]", `unrecognized key "host"`},
		{`harness: 1`, "harness", "want object, got number"},
		{`harness: { catalog: { openai: { url: "x" } } }`, "harness.catalog.openai", `unrecognized key "url"`},
		{`harness: { catalog: { openai: { baseUrl: 1 } } }`, "harness.catalog.openai.baseUrl", "want string, got number"},
		{`harness: { env: [{ name: "A", value: true }] }`, "harness.env[0].value", "want string, got boolean"},
		{`harness: { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "n", key: 1 } } }] }`, "harness.env[0].valueFrom.secretKeyRef.key", "want string, got number"},
		{`harness: { env: [{ name: "A", valueFrom: {} }] }`, "harness.env[0].valueFrom", "want exactly one source, got 0"},
		{`harness: { envFrom: [{ secretRef: { name: "a" }, configMapRef: { name: "b" } }] }`, "harness.envFrom[0]", "want one of secretRef and configMapRef"},
		{`harness: { envFrom: [{ secretRef: {} }] }`, "harness.envFrom[0].secretRef.name", "is empty"},
		{`harness: { provider: { api: "x" } }`, "harness.provider.id", "is missing"},
		{`harness: { provider: { id: "x", api: "y", contextWindow: 1.5 } }`, "harness.provider.contextWindow", "want a whole number above zero, got 1.5"},
		{`harness: { caBundle: "../ca.pem" }`, "harness.caBundle", `"../ca.pem" lies outside the Instance folder`},
		{`operator: { manage: "no" }`, "operator.manage", "want boolean, got string"},
		{`get git() { return new Map(); }`, "git", "want object, got Map object"},
	} {
		_, err := configured(t, "export default { "+c.config+" };", nil)
		var field *config.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s: got %v", c.config, err)
			continue
		}
		if field.Path != c.path || c.problem != "" && field.Problem != c.problem {
			t.Errorf("%s: got %q: %q", c.config, field.Path, field.Problem)
		}
		want := fmt.Sprintf("%s at %s: %s — %s", field.File, field.Path, field.Problem, field.Hint)
		if err.Error() != want || filepath.Base(field.File) != "jr2.config.ts" || !filepath.IsAbs(field.File) || field.Hint == "" {
			t.Errorf("the form is %q", err)
		}
	}
}

// What is wrong with a provider is told with the fields that one has.
func TestProviderHint(t *testing.T) {
	const tail = " — harness: { provider: { id, api, baseUrl?, apiKey?, contextWindow?, maxTokens?, models? } }"
	for _, text := range []string{`{ api: "x" }`, `{ id: "a/b", api: "x" }`, `{ id: "x", api: "y", baseUrl: "nowhere" }`} {
		if _, err := configured(t, "export default { harness: { provider: "+text+" } };", nil); err == nil || !strings.HasSuffix(err.Error(), tail) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestPriorityClassesShape(t *testing.T) {
	const tail = " — { control?, sandbox? }, each the name of an existing PriorityClass (ADR-0060)"
	for text, want := range map[string]string{
		`"high"`:                   "priorityClasses: want object, got string",
		`{ other: "x" }`:           `priorityClasses: unrecognized key "other"`,
		`{ control: 1 }`:           "priorityClasses.control: want string, got number",
		`{ sandbox: "" }`:          "priorityClasses.sandbox: is empty",
		`{ sandbox: "Not Right" }`: `priorityClasses.sandbox: "Not Right" is no name of a PriorityClass`,
	} {
		_, err := configured(t, "export default { priorityClasses: "+text+" };", nil)
		if err == nil || !strings.HasSuffix(err.Error(), "/jr2.config.ts at "+want+tail) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestNoDefaultExport(t *testing.T) {
	for _, text := range []string{"", "export const x = 1;", "export default undefined;", "export default null;"} {
		if _, err := configured(t, text+"\n", nil); err == nil || !strings.Contains(err.Error(), "has no default export — export default defineConfig(") {
			t.Errorf("%q: got %v", text, err)
		}
	}
	_, err := configured(t, "export default Promise.resolve({});", nil)
	if err == nil || !strings.Contains(err.Error(), "want object, got promise") {
		t.Errorf("got %v", err)
	}
}

// TestAbsentAndEmpty: an unset variable is an absent field; an empty one is present.
func TestAbsentAndEmpty(t *testing.T) {
	const text = `export default { registry: process.env.R, platforms: process.env.P?.split(","), kitRegistry: process.env.K,
		secrets: [{ name: "A", value: process.env.V, hosts: ["h.test"] }] };`
	inst, err := configured(t, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if inst.Registry != nil || inst.KitRegistry != nil || inst.Platforms != nil || inst.Secrets[0].Value.Present() {
		t.Errorf("got %+v", inst)
	}
	if err := config.CheckHeldSecrets(inst); err == nil || !strings.Contains(err.Error(), "secrets[0]: has neither value nor valueFrom") {
		t.Errorf("got %v", err)
	}
	inst, err = configured(t, text, map[string]string{"R": "", "P": "", "K": "", "V": ""})
	if err != nil {
		t.Fatal(err)
	}
	if *inst.Registry != "" || *inst.KitRegistry != "" || !reflect.DeepEqual(inst.Platforms, []string{""}) || !inst.Secrets[0].Value.Present() {
		t.Errorf("got %+v", inst)
	}
	if err := config.CheckHeldSecrets(inst); err == nil || !strings.Contains(err.Error(), "secrets[0].value: is empty") {
		t.Errorf("got %v", err)
	}
}

func TestWholeConfiguration(t *testing.T) {
	inst, err := configured(t, `
import { defineConfig } from "@jr2/orchestrator";
const pool: string = "agents";
export default defineConfig({
  platforms: ["linux/amd64", "linux/arm64"],
  sandbox: { nodeSelector: { pool }, tolerations: [{ key: "dedicated", operator: "Equal", value: pool, effect: "NoExecute", tolerationSeconds: 60 }], resources: { limits: { memory: 1.5e9, cpu: ".5" } } },
  priorityClasses: { control: "platform-critical", sandbox: "batch-low" },
  secrets: [{ name: "DB_KEY", valueFrom: { secretKeyRef: { name: "db", key: "password" } }, hosts: ["DB.test:8443"], headers: ["x-key"], paths: ["/v1"] }],
  harness: {
    provider: { id: "corp", api: "openai-completions", baseUrl: "https://llm.corp.test/v1", apiKey: process.env.KEY, contextWindow: 200000, models: { "big/one": { maxTokens: 5 } } },
    catalog: { openai: { baseUrl: "https://gw.corp.test" } },
    env: [{ name: "FOO", value: "bar" }, { name: "BAR", valueFrom: { configMapKeyRef: { name: "c", key: "k" } } }],
    envFrom: [{ prefix: "X_", secretRef: { name: "s" } }],
    caBundle: "certs/ca.pem",
  },
  operator: { manage: false },
});`, map[string]string{"KEY": "sk-verysecret"})
	if err != nil {
		t.Fatal(err)
	}
	if inst.Name != "my-instance" || *inst.PriorityClasses.Control != "platform-critical" || *inst.Operator.Manage || len(inst.Notes) != 0 {
		t.Errorf("got %+v", inst)
	}
	if *inst.Sandbox.Resources.Memory != 1500000000 || *inst.Sandbox.Resources.CPU != 500 || *inst.Sandbox.Tolerations[0].TolerationSeconds != 60 {
		t.Errorf("got %+v", inst.Sandbox)
	}
	if p := inst.Harness.Provider; p.APIKey.Reveal() != "sk-verysecret" || p.Models["big/one"].MaxTokens != 5 || p.ContextWindow != 200000 {
		t.Errorf("got %+v", p)
	}
	if inst.Harness.EnvFrom[0].SecretRef.Name != "s" || inst.Harness.Env[1].ValueFrom.ConfigMapKeyRef.Key != "k" {
		t.Errorf("got %+v", inst.Harness)
	}
	if err := config.CheckHeldSecrets(inst); err != nil {
		t.Error(err)
	}
	if text := fmt.Sprintf("%v %+v %#v", inst, inst.Harness.Provider, *inst.Harness.Provider); strings.Contains(text, "verysecret") {
		t.Error("a secret prints")
	}
}
