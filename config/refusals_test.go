package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

const imports = `import { agent, customize, defineEvent, gate, jr2Setup, open, pool, source, workspace } from "@jr2/orchestrator";
import { setup, createMachine } from "xstate";
import { review } from "./_review.ts";
const app = { app: "https://h.test/o/r.git" };
const plain = setup({}).createMachine({ id: "plain" });
`

// TestRefusals replaces workflows/review.ts; the parts of _review.ts stay.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, rule, code, say string }{
		{"event name", "W1", `defineEvent({ name: "not good", input: {} })`, "not good"},
		{"deferred without output", "W2", `defineEvent({ name: "a", input: {}, semantics: "deferred" })`, `"a"`},
		{"no event", "W3", `jr2Setup({ events: [{ name: "a" }] })`, "events[0]"},
		{"event twice", "W3", `const a = defineEvent({ name: "a", input: {} }); jr2Setup({ events: [a, a] })`, `"a" is there twice`},
		{"reserved semantics", "W3", `jr2Setup({ events: [defineEvent({ name: "a", input: {}, semantics: "deferred", output: {} })] })`, "deferred"},
		{"undeclared event", "W4", `jr2Setup({ events: [defineEvent({ name: "approve", input: {} })] }).createMachine({ id: "m", states: { a: { on: { aprove: "b" } }, b: {} } })`, `on.aprove`},
		{"undeclared event names the declared", "W4", `jr2Setup({ events: [defineEvent({ name: "approve", input: {} })] }).createMachine({ id: "m", on: { aprove: "b" } })`, `declared: "approve"`},
		{"buried menu", "W5", `const e = defineEvent({ name: "e", input: {} }); jr2Setup({ events: [e], actors: { a: agent({ model: "p/m", instructions: "x" }) } })
			.createMachine({ id: "m", initial: "s", states: { s: { invoke: { src: "a" }, initial: "t", states: { t: { on: { e: "u" } }, u: {} } } } })`, `state "s"`},
		{"body with a door", "W6", `workspace(jr2Setup({}).createMachine({ id: "m", input: {} }), { repos: app, spec: () => ({}) })`, `"m"`},
		{"image is a URL", "W7", `workspace(plain, { repos: app, image: new URL("./x", import.meta.url) })`, "URL object"},
		{"image is empty", "W7", `workspace(plain, { repos: app, image: "" })`, "image"},
		{"user is a number", "W7", `workspace(plain, { repos: app, user: 3 })`, "user"},
		{"no repos", "W8", `workspace(plain, {})`, "repos is undefined"},
		{"a list of repos", "W8", `workspace(plain, { repos: [] })`, "list"},
		{"empty repos", "W8", `workspace(plain, { repos: {} })`, "empty"},
		{"slot key", "W9", `workspace(plain, { repos: { "1a": "https://h.test/o/r" } })`, `"1a"`},
		{"relative url", "W10", `workspace(plain, { repos: { a: "./local" } })`, "./local"},
		{"unset url", "W10", `workspace(plain, { repos: { a: process.env.NOPE } })`, "undefined"},
		{"empty ref", "W10", `workspace(plain, { repos: { a: { url: "https://h.test/o/r", ref: "" } } })`, "ref"},
		{"url key", "W10", `workspace(plain, { repos: { a: { url: "https://h.test/o/r", branch: "x" } } })`, "branch"},
		{"requests", "W11", `workspace(plain, { repos: app, resources: { requests: { cpu: 1 } } })`, "workspace(): resources.requests"},
		{"size quantity", "W11", `workspace(plain, { repos: app, resources: { limits: { cpu: "1x" } } })`, "workspace(): resources.limits.cpu"},
		{"size zero", "W11", `workspace(plain, { repos: app, resources: { limits: { cpu: 0 } } })`, "resources.limits.cpu"},
		{"user key", "W11", `workspace(plain, { repos: app, user: { image: "a", memory: 1 } })`, "user.memory"},
		{"customize size", "W11", `customize(review, { resources: { limits: { disk: 1 } } })`, "customize(): resources.limits.disk"},
		{"unknown agent", "W12", `customize(review, { agents: { writer: { model: "p/m" } } })`, `"author", "critic"`},
		{"unknown child", "W13", `customize(review, { actors: { nope: {} } })`, "children: none"},
		{"image without Workspace", "W14", `customize(plain, { image: "x" })`, `"image"`},
		{"unknown slot", "W15", `customize(review, { repos: { nope: "https://h.test/o/r" } })`, `"target", "handbook"`},
		{"inherited slot", "W15", `customize(review, { repos: { constructor: "https://h.test/o/r" } })`, "constructor"},
		{"open map without slot", "W16", `customize(workspace(plain, { repos: open }), { repos: {} })`, "names no slot"},
		{"model undefined by customize", "model", `customize(review, { agents: { author: { model: process.env.NOPE } } })`, "agents.author"},
		{"model undefined", "model", `export const machine = workspace(jr2Setup({ actors: { a: agent({ model: process.env.NOPE, instructions: "x" }) } }).createMachine({ id: "m" }), { repos: app })`, `Agent "a"`},
		{"no machine", "export", `export const other = review;`, "`machine`"},
		{"a promise", "export", `export const machine = Promise.resolve(review);`, "Promise object"},
		{"throws", "throw", `null.x`, "TypeError"},
		{"throws a word", "throw", `throw "no";`, "no"},
		{"syntax", "syntax", `const x = ;`, "Unexpected"},
		{"a name that is not for workflows", "syntax", `import { startInstance } from "@jr2/orchestrator"; startInstance();`, "startInstance"},
		{"deep import", "syntax", `import x from "@jr2/orchestrator/src/setup.ts"; x;`, "reaches into"},
		{"missing file", "syntax", `import "./nothing.ts";`, "nothing.ts"},
		{"missing package", "syntax", `import "left-pad-no";`, "left-pad-no"},
		{"text import", "syntax", `import t from "./toolbox/setup.sh"; t;`, "setup.sh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := instance(t, "review", map[string]string{"workflows/review.ts": imports + c.code + "\n"})
			err := refused(t, dir, c.rule, c.say)
			file := filepath.Join(dir, "workflows", "review.ts")
			if err.File != file || err.Workflow != "review" {
				t.Errorf("%q names %q of %q", err, err.File, err.Workflow)
			}
			if c.rule != "export" && c.name != "model undefined" && c.name != "throws a word" && err.Line < 6 {
				t.Errorf("%q is at line %d", err, err.Line)
			}
		})
	}
}

func TestRefusalInAHelperFileNamesBoth(t *testing.T) {
	dir := instance(t, "review", map[string]string{"workflows/_review.ts": "import { workspace } from \"@jr2/orchestrator\";\nimport { setup } from \"xstate\";\n" +
		"export const review = workspace(setup({}).createMachine({ id: \"m\" }), { repos: {} });\n"})
	err := refused(t, dir, "W8", "empty")
	if filepath.Base(err.File) != "_review.ts" || err.Line != 3 || err.Workflow != "review" {
		t.Errorf("got %q at line %d", err, err.Line)
	}
}

func TestWorkflowNames(t *testing.T) {
	refused(t, instance(t, "ping", map[string]string{"workflows/-x.ts": "throw 1"}), "name", "-x")
	refused(t, instance(t, "ping", map[string]string{"workflows/.x.ts": "throw 1"}), "name", ".x")
	refused(t, instance(t, "ping", map[string]string{"workflows/" + strings.Repeat("a", 64) + ".ts": "throw 1"}), "name")
	dir := instance(t, "ping", map[string]string{"workflows/ping.test.ts": "export { machine } from \"./ping.ts\";\n"})
	if got := load(t, dir).WorkflowNames(); !reflect.DeepEqual(got, []string{"ping", "ping.test"}) {
		t.Error(got)
	}
	if err := os.RemoveAll(filepath.Join(dir, "workflows")); err != nil {
		t.Fatal(err)
	}
	if got := load(t, dir).Workflows; len(got) != 0 {
		t.Error(got)
	}
	write(t, dir, map[string]string{"workflows": "a file"})
	if _, err := config.Load(context.Background(), config.LoadOptions{Dir: dir}); err == nil {
		t.Error("a file in the place of workflows/ passed")
	}
}

func TestOpenParts(t *testing.T) {
	const parent = `import { jr2Setup } from "@jr2/orchestrator";
import { review } from "./_review.ts";
`
	for _, c := range []struct {
		name, code string
		paths      []string
		fixes      []string
	}{
		{"registered", `export { review as machine } from "./_review.ts";`, nil, []string{
			`export const machine = customize(review, { repos: { target: "<url>" } })`,
			`export const machine = customize(review, { agents: { author: { model: "<provider>/<model>" } } })`}},
		{"named slot", parent + `export const machine = jr2Setup({ events: [], actors: { review } }).createMachine({ id: "p", initial: "a", states: { a: { invoke: { src: "review" } } } });`,
			[]string{"review"}, []string{
				`export const machine = customize(review, { actors: { review: { repos: { target: "<url>" } } } })`,
				`export const machine = customize(review, { actors: { review: { agents: { author: { model: "<provider>/<model>" } } } } })`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": c.code}))
			parts := inst.OpenParts()
			if len(parts) != 2 || parts[0].Part.Kind != config.OpenRepo || parts[0].Part.Slot != "target" || parts[1].Part.Slot != "author" {
				t.Fatalf("got %+v", parts)
			}
			for i, part := range parts {
				if strings.Join(part.Part.Path, "/") != strings.Join(c.paths, "/") || part.Part.Path == nil {
					t.Errorf("path %v", part.Part.Path)
				}
				if got := part.Part.Fix("review"); got != c.fixes[i] {
					t.Errorf("fix %s", got)
				}
			}
		})
	}
	t.Run("by object", func(t *testing.T) {
		inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": parent +
			`export const machine = jr2Setup({ events: [] }).createMachine({ id: "p", initial: "a", states: { a: { invoke: { src: review } } } });`}))
		parts := inst.OpenParts()
		if len(parts) != 2 || parts[0].Part.Path != nil || parts[1].Part.Path != nil {
			t.Fatalf("got %+v", parts)
		}
		if fix := parts[0].Part.Fix("review"); !strings.Contains(fix, "ADR-0049") || !strings.Contains(fix, "ADR-0051") {
			t.Error(fix)
		}
		if !inst.ComposesSandbox() {
			t.Error("the Workspace is not seen")
		}
	})
	t.Run("whole map", func(t *testing.T) {
		inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": imports + `export const machine = pool(workspace(plain, { repos: open }), { source: {}, itemId: () => "" });`}))
		parts := inst.OpenParts()
		if len(parts) != 1 || parts[0].Part.Slot != "" || len(parts[0].Part.Path) != 0 || parts[0].Part.Path == nil {
			t.Fatalf("got %+v", parts)
		}
		if fix := parts[0].Part.Fix("x-1"); fix != `export const machine = customize(x1, { repos: { <slot>: "<url>" } })` {
			t.Error(fix)
		}
	})
}

func TestShapesOfMachines(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want []string // path of each Workspace, "?" for none
	}{
		"pool":            {`export const machine = pool(workspace(plain, { repos: app }), { source: source({ next: gate }), itemId: () => "" });`, []string{""}},
		"pool in a slot":  {`export const machine = jr2Setup({ actors: { p: pool(workspace(plain, { repos: app }), {}) } }).createMachine({ id: "m" });`, []string{"p"}},
		"slot named body": {`export const machine = jr2Setup({ actors: { body: workspace(plain, { repos: app }) } }).createMachine({ id: "m" });`, []string{"body"}},
		"same twice":      {`const w = workspace(plain, { repos: app }); export const machine = jr2Setup({ actors: { a: w, b: w } }).createMachine({ id: "m" });`, []string{"a"}},
		"list of inline":  {`export const machine = jr2Setup({}).createMachine({ id: "m", states: { a: { invoke: [{ src: workspace(plain, { repos: app }) }] } } });`, []string{"?"}},
		"deep and quick": {`const quick = customize(review, { repos: { target: app.app }, image: "r/quick" }); const deep = customize(review, { image: "r/deep" });
			export const machine = jr2Setup({ actors: { deep, quick } }).createMachine({ id: "m" });`, []string{"deep", "quick"}},
		"cycle": {`const m = createMachine({ id: "c" }); m.implementations.actors.self = m; export const machine = m;`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": imports + c.code}))
			var got []string
			for _, ws := range inst.Workflows[0].Workspaces {
				if ws.Path == nil {
					got = append(got, "?")
				} else {
					got = append(got, strings.Join(ws.Path, "/"))
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCustomizeLayers(t *testing.T) {
	inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": imports + `
export const machine = customize(customize(review, { resources: { limits: { cpu: 1 } }, user: "r/ide", repos: { handbook: open } }),
  { resources: { limits: { memory: "5Gi" } }, repos: { target: ({ input }) => input.url }, agents: { critic: undefined, author: { model: "p/m", workspace: "none" } } });`}))
	ws := inst.Workflows[0].Workspaces[0]
	if config.FormatMemory(*ws.Size.Memory) != "5Gi" || *ws.Size.CPU != 1000 || ws.User != "r/ide" || ws.UserSize.Memory != nil {
		t.Errorf("got %+v", ws)
	}
	if ws.Repos[0].State != config.SlotPerRun || ws.Repos[1].State != config.SlotOpen || ws.Repos[0].Slot != "target" {
		t.Errorf("got %+v", ws.Repos)
	}
	if !inst.NeedsInstanceHarness() || !inst.Workflows[0].HasDoor {
		t.Errorf("got %+v", inst.Workflows[0])
	}
}

func TestSizesOfVariants(t *testing.T) {
	hold, err := os.ReadFile(samples + "hold/workflows/hold.ts")
	if err != nil {
		t.Fatal(err)
	}
	const stated = `resources: { limits: { memory: "3Gi", cpu: "1500m" } },`
	instanceSize := map[string]string{"jr2.config.ts": `export default { name: "fx-hold", sandbox: { resources: { limits: { memory: "4Gi", cpu: 2 } } } };`}
	for name, c := range map[string]struct {
		with string
		want []string
	}{
		"none stated":  {"", []string{"4Gi", "instance", "2", "instance", "4032Mi", "1950m", "1008Mi"}},
		"memory alone": {`resources: { limits: { memory: "3Gi" } },`, []string{"3Gi", "machine", "1", "kit", "3008Mi", "950m", "752Mi"}},
		"empty limits": {`resources: { limits: {} },`, []string{"4Gi", "instance", "2", "instance", "4032Mi", "1950m", "1008Mi"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := instance(t, "hold", instanceSize)
			write(t, dir, map[string]string{"workflows/hold.ts": strings.Replace(string(hold), stated, c.with, 1)})
			sizes, err := config.Sizes(load(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			wantSize(t, sizes[0], c.want...)
		})
	}
	t.Run("too small for the split", func(t *testing.T) {
		inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": imports +
			`export const machine = customize(review, { agents: { author: { model: "p/m" } }, repos: { target: app.app }, resources: { limits: { memory: "1280Mi" } } });`}))
		_, err := config.Sizes(inst)
		var size *config.SizeError
		if !errors.As(err, &size) || size.Short != "memory" || config.FormatMemory(size.Harness.Memory) != "192Mi" {
			t.Fatalf("got %v", err)
		}
		for _, word := range []string{"1280Mi", "machine", "64Mi", "1Gi", "256Mi", "ADR-0060"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
	})
}

func TestOneRepoInTwoSpellings(t *testing.T) {
	inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": imports +
		`export const machine = workspace(plain, { repos: { a: "https://h.test/o/r", b: "git@H.test:o/r.git" } });`}))
	if repos := inst.BoundRepos(); len(repos) != 1 || repos[0].URL != "https://h.test/o/r" {
		t.Errorf("got %+v", repos)
	}
}

func TestNotes(t *testing.T) {
	inst := load(t, instance(t, "review", map[string]string{
		"jr2.config.ts": `export default { name: "fx", flavour: 1, sandbox: { affinity: {} } };`,
		"workflows/review.ts": imports + `console.log(process.env.HOME, process.cwd());
export const machine = workspace(plain, { repos: app, image: new URL("./toolbox", import.meta.url).pathname });`}))
	notes := strings.Join(inst.Notes, "\n")
	for _, word := range []string{"flavour", "affinity", "process.env", "registry ref", "xstate:"} {
		if !strings.Contains(notes, word) {
			t.Errorf("no note says %q:\n%s", word, notes)
		}
	}
	if len(inst.ImageContexts()) != 0 {
		t.Error("a path is no image context")
	}
}

func TestDefaultImageNeedsADockerfile(t *testing.T) {
	dir := instance(t, "hold", nil)
	if err := os.Remove(filepath.Join(dir, "images/default/Dockerfile")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(context.Background(), config.LoadOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "Dockerfile is missing") {
		t.Errorf("got %v", err)
	}
}
