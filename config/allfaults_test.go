package config_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

// wrongEverywhere has a fault in each section, in an order of its own, and the echoes that each could have.
const wrongEverywhere = `export default {
  operator: { manage: "no" },
  harness: {
    caBundle: "../ca.pem", env: [{ name: "A B", value: true }, { valueFrom: { secretKeyRef: 3 } }, { name: "OK", value: "x", valeu: "y" }],
    envFrom: [{ secretRef: {} }, { configMapRef: { name: "fine" } }], catalog: { openai: { url: "x" } }, provider: { api: 1, contextWindow: 1.5 },
  },
  secrets: [{ name: "lower", hosts: "h.test" }, { name: "B", value: 3, hosts: ["b.test", 4] }, { name: "C", valueFrom: {}, hosts: ["c.test"] }],
  priorityClasses: { other: "x", control: "Not Right", sandbox: "" },
  sandbox: { nodeSelector: { pool: true, "no key!": "x" }, tolerations: [{ key: true, effect: "Never" }, { effect: "Never" }], resources: { limits: { memory: "0", cpu: "x" } } },
  platforms: ["linux/amd64", 1], kitRegistry: null, registry: "https://r.test/x",
  git: { credentials: [{}, { match: "*", token: "not a name", password: "x", sshKey: "Deploy" }] },
  name: "fx",
};`

// TestEveryFaultAtOnce: all faults come with one load, in the order of the sections and their indices, none of them twice; and what could be read
// comes with them, the Workflows among it.
func TestEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	dir := instance(t, "ping", map[string]string{"jr2.config.ts": wrongEverywhere, "workflows/broken.ts": "throw new Error('boom');"})
	want := []string{
		"git.credentials[0].match", "git.credentials[1]", "git.credentials[1].token", "git.credentials[1].sshKey", "registry", "kitRegistry", "platforms[1]",
		"sandbox.nodeSelector.pool", `sandbox.nodeSelector["no key!"]`, "sandbox.tolerations[0].key", "sandbox.tolerations[1].operator", "sandbox.tolerations[1].effect",
		"sandbox.resources.limits.memory", "sandbox.resources.limits.cpu", "priorityClasses", "priorityClasses.sandbox", "priorityClasses.control",
		"secrets[0].hosts", "secrets[0].name", "secrets[1].value", "secrets[1].hosts[1]", "secrets[2].valueFrom.secretKeyRef",
		"harness.provider.id", "harness.provider.api", "harness.provider.contextWindow", "harness.catalog.openai", "harness.env[0].value", "harness.env[0].name",
		"harness.env[1].name", "harness.env[1].valueFrom.secretKeyRef", "harness.env[2]", "harness.envFrom[0].secretRef.name", "harness.caBundle", "operator.manage",
	}
	for _, isolate := range [][]string{nil, isolated(t)} {
		inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Isolate: isolate})
		if inst == nil {
			t.Fatal(err)
		}
		told := lines(err)
		for _, path := range want {
			at := slices.IndexFunc(told, func(line string) bool {
				return strings.HasPrefix(line, filepath.Join(inst.Root, "jr2.config.ts")+" at "+path+": ")
			})
			if at < 0 {
				t.Errorf("not told, or not after the ones before: %s in\n%s", path, strings.Join(told, "\n"))
				continue
			}
			told = slices.Delete(told, at, at+1)
		}
		if len(told) != 1 || !strings.Contains(told[0], `workflow "broken": Error: boom`) {
			t.Errorf("and then\n%s", strings.Join(told, "\n"))
		}
		var field *config.FieldError
		var module *config.ModuleError
		if !errors.As(err, &field) || field.Path != want[0] || !errors.As(err, &module) || module.Workflow != "broken" {
			t.Errorf("the first are %v and %v", field, module)
		}
		if !slices.IsSorted(positions(t, want, lines(err))) {
			t.Errorf("the order is\n%v", err)
		}
		if inst.Name != "fx" || inst.Git.Credentials[1].Match != "*" || inst.Harness.EnvFrom[1].ConfigMapRef.Name != "fine" || inst.Harness.CABundle != "" {
			t.Errorf("read: %+v", inst)
		}
		if got := inst.WorkflowNames(); !slices.Equal(got, []string{"ping"}) || len(inst.Modules) != 2 {
			t.Errorf("read: %v and %d modules", got, len(inst.Modules))
		}
		// The rules of held secrets have nothing to say of what could not be read.
		if err := config.CheckHeldSecrets(inst); err == nil || len(lines(err)) != 2 {
			t.Errorf("of held secrets: %v", err)
		}
	}
}

// positions are the places of the wanted paths among the lines.
func positions(t *testing.T, paths, told []string) []int {
	t.Helper()
	var at []int
	for _, path := range paths {
		at = append(at, slices.IndexFunc(told, func(line string) bool { return strings.Contains(line, " at "+path+": ") }))
	}
	return at
}

// TestNameThatNobodyCanSay: a name that can't be read is none; the folder's must not stand in, because it is the name of another Instance.
func TestNameThatNobodyCanSay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`export default { name: 3 };`, `export default 3;`, `export const x = 1;`, `export default { name: null };`} {
		inst, err := configured(t, text, nil)
		if err == nil || len(lines(err)) != 1 || inst == nil || inst.Name != "" {
			t.Errorf("%s: got %+v, %v", text, inst, err)
		}
	}
	inst, err := configured(t, `export default { registry: 3 };`, nil)
	if err == nil || inst.Name != "my-instance" || inst.Registry != nil {
		t.Errorf("got %+v, %v", inst, err)
	}
}

// TestEveryBrokenWorkflow: each that is broken has an error of its own, whatever breaks it, and the sound ones are read. A helper that is broken is
// told once, or for each Workflow that it breaks.
func TestEveryBrokenWorkflow(t *testing.T) {
	t.Parallel()
	sound := imports + `export const machine = workspace(plain, { repos: app });`
	dir := instance(t, "review", map[string]string{
		"workflows/review.ts": sound, "workflows/zz.ts": sound,
		"workflows/a.ts": "throw new Error('boom');", "workflows/b.ts": "const x = ;", "workflows/c.ts": imports + `export const machine = workspace(plain, { repos: {} });`,
		"workflows/d.ts": "await new Promise(() => {});", "workflows/-e.ts": sound, "workflows/f.ts": `import "./_throws.ts"; export const machine = 1;`,
		"workflows/g.ts": `import "./_throws.ts"; export const machine = 1;`, "workflows/_throws.ts": "throw new Error('helper');",
		"workflows/h.ts": `import "./_syntax.ts";`, "workflows/i.ts": `import "./_syntax.ts";`, "workflows/_syntax.ts": "let let = 1;",
		"workflows/j.ts": `import "../../beside.ts";`, "workflows/k.ts": imports + `export const machine = workspace(plain, { repos: app, image: import.meta.resolve("../../x") });`,
	})
	for _, isolate := range [][]string{nil, isolated(t)} {
		inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Isolate: isolate})
		if inst == nil {
			t.Fatal(err)
		}
		told := strings.Join(lines(err), "\n")
		for _, say := range []string{
			`workflow "a": Error: boom`, `b.ts:1:`, `workflow "c": `, `workflow "d": a module waits`, `workflow "-e": `, `workflow "f": Error: helper`,
			`workflow "g": Error: helper`, `_syntax.ts:1:`, `workflow "j": imports `, `workflow "k": image `,
		} {
			if strings.Count(told, say) != 1 {
				t.Errorf("not told once: %s in\n%s", say, told)
			}
		}
		if got := inst.WorkflowNames(); !slices.Equal(got, []string{"k", "review", "zz"}) { // k is read, its image is refused
			t.Errorf("read: %v", got)
		}
		if got := len(inst.Modules); got != 4 {
			t.Errorf("%d modules", got)
		}
		if !errors.Is(err, config.ErrUnsettled) || !errors.As(err, new(*config.OutsideError)) {
			t.Errorf("the causes are lost: %v", err)
		}
	}
	// With a configuration that can't be evaluated the Workflows are told too, and there is no Instance.
	write(t, dir, map[string]string{"jr2.config.ts": "throw new Error('config');"})
	inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
	if told := lines(err); inst != nil || len(told) != 10 || !strings.Contains(told[0], "Error: config") || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v, %v", inst, err)
	}
}

// TestValidateTellsAll: a Go value is held to the same.
func TestValidateTellsAll(t *testing.T) {
	t.Parallel()
	zero, empty := int64(0), ""
	inst := &config.Instance{
		Name: "Team A", Git: config.Git{Credentials: []config.GitCredential{{SSHKey: "A b"}}}, PriorityClasses: config.PriorityClasses{Control: &empty},
		Sandbox: config.Sandbox{Resources: config.Limits{Memory: &zero, CPU: &zero}},
		Workflows: []config.Workflow{
			{Name: "a", Agents: []config.Agent{{Name: "x", Access: "all", ThinkingLevel: "deep"}}, Workspaces: []config.Workspace{{Size: config.Limits{CPU: &zero}}}},
			{Name: "a"},
		},
	}
	var got []string
	for _, line := range lines(config.Validate(inst)) {
		at, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "the Instance at "), "workflow "), ":")
		got = append(got, at)
	}
	want := []string{"name", "git.credentials[0].match", "git.credentials[0].sshKey", "sandbox.resources.limits.memory", "sandbox.resources.limits.cpu", "priorityClasses.control",
		`"a"`, `"a"`, `"a"`, `"a"`, `"a"`, `"a"`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
