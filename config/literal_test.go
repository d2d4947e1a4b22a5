package config_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

func TestLiteralSecrets(t *testing.T) {
	const text = `const key = "sk-in-a-constant";
export default { name: "x",
  secrets: [
    { name: "A", value: "sk-in-the-file", hosts: ["h.test"] },
    { name: "B", value: process.env.B, hosts: ["h.test"] },
    { name: "C", value: "short", hosts: ["h.test"] },
    { name: "D", value: "quo\"te'd\\back", hosts: ["h.test"] },
    { name: "E", valueFrom: { secretKeyRef: { name: "n", key: "k" } }, hosts: ["h.test"] },
  ],
  harness: { provider: { id: "p", api: "a", baseUrl: "https://h.test", apiKey: key }, env: [
    { name: "V", value: process.env.V }, { name: "W", value: ` + "`two\nlines`" + ` }, { name: "X", value: "geheim-ж" } ] } };`
	inst, err := configured(t, text, map[string]string{"B": "sk-of-the-shell", "V": "from-the-shell"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"secrets[0].value", "secrets[3].value", "harness.provider.apiKey", "harness.env[1].value", "harness.env[2].value"}
	if got := inst.LiteralSecrets(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	held := config.NewSecret("sk-literal")
	inst = &config.Instance{Secrets: []config.HeldSecret{{Value: held}}}
	if got := inst.LiteralSecrets(); got != nil {
		t.Errorf("without modules: %q", got)
	}
	inst.Modules = []config.Module{{Name: "w", Source: []byte("const a = `Bearer sk-literal`;")}}
	if got := inst.LiteralSecrets(); !reflect.DeepEqual(got, []string{"secrets[0].value"}) {
		t.Errorf("in a Workflow: %q", got)
	}
}

// TestKitVersionNotes: what is asked for in words that are no version is told, with the version that is taken.
func TestKitVersionNotes(t *testing.T) {
	for spec, want := range map[string]string{
		"^1.2.3": `"^1.2.3"`, "latest": `"latest"`, "workspace:*": `"workspace:*"`, "npm:@fork/o@1.2.3": `"npm:@fork/o@1.2.3"`, "*": `"*"`, "": `""`, "catalog:": `"catalog:"`,
		"git+https://me:hush@h.test/o.git": `"git+https://me:xxxxx@h.test/o.git"`, "0.4.0": "",
	} {
		for _, field := range []string{"dependencies", "devDependencies", "peerDependencies"} {
			dir := instance(t, "ping", map[string]string{"package.json": `{"` + field + `":{"@jr2/orchestrator":"` + spec + `"}}`})
			inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, KitVersion: "9.9.9"})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(inst.Notes, "\n")
			if (want == "") == strings.Contains(notes, "asks for") || !strings.Contains(notes, want) || want != "" && !strings.Contains(notes, "9.9.9 is taken") || strings.Contains(notes, "hush") {
				t.Errorf("%s: %q: got %s", field, spec, notes)
			}
		}
	}
	dir := instance(t, "ping", map[string]string{"package.json": `{"dependencies":{"@jr2/orchestrator":"^1.2.3"}}`, "node_modules/@jr2/orchestrator/package.json": `{"version":"1.2.4"}`})
	if notes := strings.Join(load(t, dir).Notes, "\n"); strings.Contains(notes, "asks for") {
		t.Errorf("an installed one: %s", notes)
	}
	write(t, dir, map[string]string{"node_modules/@jr2/orchestrator/package.json": `{"version":"next"}`})
	if notes := strings.Join(load(t, dir).Notes, "\n"); !strings.Contains(notes, "asks for") || !strings.Contains(notes, `its version "next" is none`) {
		t.Errorf("a broken one: %s", notes)
	}
}
