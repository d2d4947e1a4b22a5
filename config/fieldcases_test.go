package config_test

import (
	"errors"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

// TestF01ValuesThatAreNoStrings: one entry of another type never erases the others; it is refused, by its path.
func TestF01ValuesThatAreNoStrings(t *testing.T) {
	for text, want := range map[string]string{
		`{ team: "core", debug: true }`: "sandbox.nodeSelector.debug: want string, got boolean",
		`{ tier: 1, app: "web" }`:       "sandbox.nodeSelector.tier: want string, got number",
		// Siblings: null, and a list.
		`{ app: "web", zone: null }`:  "sandbox.nodeSelector.zone: want string, got null",
		`{ app: "web", zone: ["a"] }`: "sandbox.nodeSelector.zone: want string, got list",
	} {
		_, err := configured(t, "export default { sandbox: { nodeSelector: "+text+" } };", nil)
		if err == nil || !strings.Contains(err.Error(), " at "+want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	inst, err := configured(t, `export default { sandbox: { nodeSelector: { app: "web", flag: "true", gone: undefined } } };`, nil)
	if err != nil || len(inst.Sandbox.NodeSelector) != 2 || inst.Sandbox.NodeSelector["flag"] != "true" {
		t.Errorf("got %+v %v", inst, err)
	}
}

// TestF11JavaScriptValues: what JavaScript has and data has not.
func TestF11JavaScriptValues(t *testing.T) {
	for text, want := range map[string]string{
		`platforms: ["linux/amd64",,"linux/arm64"]`:                                     "platforms[1]: want string, got hole in a list",
		`harness: { provider: { id: "p", api: "a", contextWindow: 9007199254740993 } }`: "harness.provider.contextWindow: want number, got whole number that JavaScript cannot hold exactly",
		`harness: { provider: { id: "p", api: "a", contextWindow: -0 } }`:               "harness.provider.contextWindow: want a whole number above zero, got 0",
		`registry: new Date(0)`:          "registry: want string, got Date object",
		`registry: () => "r.test"`:       "registry: want string, got function",
		`registry: Promise.resolve("r")`: "registry: want string, got promise",
		`registry: null`:                 "registry: want string, got null",
		// Siblings: a symbol, an unsafe number deep in a part with Kubernetes' own shape, a hole that an operation made.
		`registry: Symbol("r")`: "registry: want string, got symbol",
		`sandbox: { tolerations: [{ key: "a", effect: "NoExecute", tolerationSeconds: 2 ** 60 }] }`: "sandbox.tolerations[0].tolerationSeconds: want ",
		`secrets: (() => { const a = [{ name: "A" }]; delete a[0]; return a; })()`:                  "secrets[0]: want object, got hole in a list",
		`sandbox: { resources: { limits: { memory: 2 ** 60 } } }`:                                   "sandbox.resources.limits.memory: want quantity, got whole number that",
	} {
		_, err := configured(t, "export default { "+text+" };", nil)
		var field *config.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), "jr2.config.ts at "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for _, text := range []string{"async () => ({})", "Promise.reject(new Error('no'))", "(async () => ({}))()"} {
		if _, err := configured(t, "export default "+text+";", nil); err == nil || !strings.Contains(err.Error(), "want object, got ") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	inst, err := configured(t, `const cpu = await Promise.resolve(0.5);
export default { registry: undefined, sandbox: { resources: { limits: { cpu, memory: 8080.0 } } }, harness: { provider: { id: "p", api: "a", maxTokens: 1e3 } } };`, nil)
	if err != nil || inst.Registry != nil || *inst.Sandbox.Resources.CPU != 500 || *inst.Sandbox.Resources.Memory != 8080 || inst.Harness.Provider.MaxTokens != 1000 {
		t.Errorf("got %+v %v", inst, err)
	}
	for _, cpu := range []string{"1", `"1"`, "1.0", `"1000m"`} {
		inst, err := configured(t, "export default { sandbox: { resources: { limits: { cpu: "+cpu+" } } } };", nil)
		if err != nil || *inst.Sandbox.Resources.CPU != 1000 {
			t.Errorf("%s: got %v", cpu, err)
		}
	}
}

// TestF28NoSecretOutOfNothing: a value that is not there, or is there and empty, is refused; nothing is made up in its place.
func TestF28NoSecretOutOfNothing(t *testing.T) {
	const text = `export default { secrets: [{ name: "A", value: process.env.A, hosts: ["h.test"] }] };`
	for value, want := range map[string]string{
		"absent": "secrets[0]: has neither value nor valueFrom", "": "secrets[0].value: is empty",
		// Siblings: a blank, and a line break at the end.
		" ": "secrets[0].value: starts or ends with a blank", "hush\n": "secrets[0].value: starts or ends with a blank",
		"hush": "",
	} {
		env := map[string]string{"A": value}
		if value == "absent" {
			env = nil
		}
		inst, err := configured(t, text, env)
		if err != nil {
			t.Fatalf("%q: %v", value, err) // where the file is read without the shell, no value is there
		}
		err = config.CheckHeldSecrets(inst)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), " at "+want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%q: got %v", value, err)
		}
		again, err := configured(t, text, env)
		if err != nil || again.Secrets[0].Value.Reveal() != inst.Secrets[0].Value.Reveal() {
			t.Errorf("%q: a second load differs", value)
		}
	}
}
