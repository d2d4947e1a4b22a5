package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// every is a configuration that says something in each field that there is, and nothing wrong.
const every = `{
  "name": "x", "registry": "r.test/team", "kitRegistry": "r.test/kit", "platforms": ["linux/amd64"],
  "git": { "credentials": [{ "match": "h.test/", "token": "TEAM_TOKEN", "sshKey": "jr2-git-ssh" }] },
  "sandbox": {
    "nodeSelector": { "pool": "agents" }, "resources": { "limits": { "memory": "2Gi", "cpu": 1 } },
    "tolerations": [{ "key": "dedicated", "operator": "Equal", "value": "agents", "effect": "NoExecute", "tolerationSeconds": 60 }]
  },
  "priorityClasses": { "control": "platform-critical", "sandbox": "batch-low" },
  "secrets": [
    { "name": "A", "value": "hush", "hosts": ["a.test"], "headers": ["x-a"], "paths": ["/v1"] },
    { "name": "B", "valueFrom": { "secretKeyRef": { "name": "team", "key": "k" } }, "hosts": ["b.test"] }
  ],
  "harness": {
    "provider": { "id": "corp", "api": "openai-completions", "baseUrl": "https://llm.test/v1", "apiKey": "hushed", "contextWindow": 9, "maxTokens": 8,
      "models": { "big": { "contextWindow": 7, "maxTokens": 6 } } },
    "catalog": { "openai": { "baseUrl": "https://gw.test" } },
    "env": [
      { "name": "LITERAL", "value": "v" },
      { "name": "SECRET", "valueFrom": { "secretKeyRef": { "name": "other", "key": "k", "optional": true } } },
      { "name": "MAP", "valueFrom": { "configMapKeyRef": { "name": "m", "key": "k", "optional": false } } },
      { "name": "FIELD", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } },
      { "name": "RESOURCE", "valueFrom": { "resourceFieldRef": { "containerName": "harness", "resource": "limits.cpu", "divisor": "1" } } }
    ],
    "envFrom": [{ "prefix": "P_", "secretRef": { "name": "s", "optional": true } }, { "configMapRef": { "name": "m", "optional": true } }],
    "caBundle": "certs/ca.pem"
  },
  "operator": { "manage": false }
}`

// Texts that pass: what is empty means "nothing" there, what is long is no name of anything.
var (
	mayBeEmpty = []string{"registry", "kitRegistry", "platforms[0]", "sandbox.nodeSelector.pool", "sandbox.tolerations[0].operator", "sandbox.tolerations[0].value",
		"harness.env[0].value", "harness.env[3].valueFrom.fieldRef.apiVersion", "harness.env[4].valueFrom.resourceFieldRef.containerName", "harness.envFrom[0].prefix"}
	mayBeLong = []string{"platforms[0]", "git.credentials[0].match", "secrets[0].value", "secrets[0].paths[0]", "harness.provider.id", "harness.provider.api", "harness.provider.apiKey",
		"harness.env[0].value", "harness.env[3].valueFrom.fieldRef.apiVersion", "harness.env[3].valueFrom.fieldRef.fieldPath", "harness.env[4].valueFrom.resourceFieldRef.containerName",
		"harness.env[4].valueFrom.resourceFieldRef.resource", "harness.caBundle",
		"harness.env[0].name", "harness.env[1].name", "harness.env[2].name", "harness.env[3].name", "harness.env[4].name", "harness.envFrom[0].prefix",
		"git.credentials[0].token", "secrets[0].headers[0]"}
	quantities = []string{"sandbox.resources.limits.memory", "sandbox.resources.limits.cpu", "harness.env[4].valueFrom.resourceFieldRef.divisor"}
)

// TestEveryField puts a value of each kind into each field. One that does not belong there is told exactly once, at its own path, in the fixed form
// and with a hint: no echo of it by another rule, no panic, nothing that passes.
func TestEveryField(t *testing.T) {
	t.Parallel()
	if errs := faultsIn(t, every); len(errs) > 0 {
		t.Fatalf("as it stands: %v", errs)
	}
	fields := fieldsOf("", decoded(t, every))
	if len(fields) < 80 {
		t.Fatalf("%d fields", len(fields))
	}
	values := []any{nil, json.Number("3"), "words", []any{json.Number("1")}, map[string]any{"zz": json.Number("1")}, true, map[string]any{notData: "function"}}
	for _, f := range fields {
		for _, value := range values {
			if kindOf(value) == f.kind || slices.Contains(quantities, f.path) && (kindOf(value) == "number" || kindOf(value) == "string") {
				continue
			}
			errs := faultsIn(t, f.with(t, value))
			if len(errs) != 1 || errs[0].Path != f.path || !strings.HasSuffix(errs[0].Problem, ", got "+kindOf(value)) {
				t.Errorf("%s: %s in the place of a %s: got %v", f.path, kindOf(value), f.kind, errs)
			}
		}
		f.wrongOfItsKind(t)
	}
}

// wrongOfItsKind puts values of the right kind there that can't be meant.
func (f aField) wrongOfItsKind(t *testing.T) {
	t.Helper()
	wrong := map[string][]any{
		"string": {"", strings.Repeat("a", 1<<16)},
		"number": {json.Number("-1"), json.Number("0.5"), json.Number("1e99"), json.Number(strings.Repeat("9", 1<<16))},
		"list":   {[]any{json.Number("1")}, []any{nil}},
		"object": {map[string]any{"zz": json.Number("1")}},
	}[f.kind]
	for n, value := range wrong {
		if f.kind == "string" && slices.Contains([][]string{mayBeEmpty, mayBeLong}[n], f.path) || f.path == "sandbox.tolerations[0].tolerationSeconds" && n == 0 ||
			f.path == "sandbox.resources.limits.cpu" && n == 1 {
			continue
		}
		errs := faultsIn(t, f.with(t, value))
		if len(errs) == 0 && !slices.Contains([]string{"", "git", "sandbox", "harness", "harness.provider", "operator"}, f.path) { // these are noted
			t.Errorf("%s: %.80v passes", f.path, value)
		}
		for _, err := range errs {
			if !IsWithin(err.Path, parentOf(f.path)) {
				t.Errorf("%s: %.80v is told of %s: %v", f.path, value, err.Path, err)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("%s: a message of %d bytes", f.path, len(err.Error()))
			}
		}
	}
}

// faultsIn reads a configuration as Load does, and checks the form of each fault.
func faultsIn(t *testing.T, text string) []*FieldError {
	t.Helper()
	const file = "/folder/jr2.config.ts"
	inst, err := decodeConfig(file, json.RawMessage(`{"value":`+text+`}`))
	if inst == nil {
		t.Fatal(err)
	}
	inst.Root = filepath.Dir(file)
	all := together(append(append(parts(err), validate(inst)...), CheckHeldSecrets(inst))...)
	var out []*FieldError
	for _, one := range parts(all) {
		field, ok := one.(*FieldError)
		if !ok || field.File != file || field.Hint == "" || field.Problem == "" {
			t.Errorf("no FieldError of the file, or one without a hint: %#v", one)
			continue
		}
		if at := " at " + field.Path; !strings.HasPrefix(one.Error(), file+at+": ") || !strings.Contains(one.Error(), " — ") || strings.Contains(one.Error(), "hush") {
			t.Errorf("the form is %q", one)
		}
		out = append(out, field)
	}
	return out
}

// aField is a field of every, and how to put another value there.
type aField struct {
	path, kind string
	steps      []any // keys and indices
}

func fieldsOf(path string, value any, steps ...any) []aField {
	var fields []aField
	if path != "" {
		fields = append(fields, aField{path, kindOf(value), slices.Clone(steps)})
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(value) {
			fields = append(fields, fieldsOf(joinPath(path, key), value[key], append(steps, key)...)...)
		}
	case []any:
		for i, item := range value {
			fields = append(fields, fieldsOf(fmt.Sprintf("%s[%d]", path, i), item, append(steps, i)...)...)
		}
	}
	return fields
}

// with is the text of every with another value in the field.
func (f aField) with(t *testing.T, value any) string {
	t.Helper()
	root := decoded(t, every)
	at := root
	for n, step := range f.steps {
		last := n == len(f.steps)-1
		switch step := step.(type) {
		case string:
			if last {
				at.(map[string]any)[step] = value
			}
			at = at.(map[string]any)[step]
		case int:
			if last {
				at.([]any)[step] = value
			}
			at = at.([]any)[step]
		}
	}
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	reader := json.NewDecoder(strings.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func parentOf(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, '['), 0)]
}
