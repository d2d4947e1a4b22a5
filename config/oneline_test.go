package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

func TestRedactURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://me:pw@h.test/x":   "https://me:xxxxx@h.test/x",
		"https://me:p/w@h.test":    "https://me:xxxxx@h.test",
		"https://me:p@w@h.test":    "https://me:xxxxx@h.test",
		"https://me:p%zz@h.test":   "https://me:xxxxx@h.test",
		"https://:pw@h.test":       "https://:xxxxx@h.test",
		"https://token@h.test/x":   "https://xxxxx@h.test/x",
		"ssh://git@h.test/x":       "ssh://git@h.test/x",
		"ssh://git:pw@h.test/x":    "ssh://git:xxxxx@h.test/x",
		"git@h.test:o/r":           "git@h.test:o/r",
		"me:pw@h.test/x":           "me:xxxxx@h.test/x",
		"https://h.test/@scope/x":  "https://h.test/@scope/x",
		"https://h.test:8080/a@b":  "https://h.test:8080/a@b",
		"https://h.test/plain?a=b": "https://h.test/plain?a=b",
	} {
		if got := config.RedactURL(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestPasswordsOfURLsAreNeverShown goes through the fields and modules that hold an address.
func TestPasswordsOfURLsAreNeverShown(t *testing.T) {
	long := strings.Repeat("hush", 40) // longer than what a message quotes
	for _, c := range []struct{ text, say string }{
		{`registry: "me:hush@r.test"`, "user or a password"},
		{`kitRegistry: "https://me:hush@r.test"`, "user or a password"},
		{`harness: { provider: { id: "p", api: "a", baseUrl: "https://me:hush@llm.test/v1" } }`, "user or a password"},
		{`harness: { provider: { id: "p", api: "a", baseUrl: "https://hush@llm.test/v1", apiKey: "k" } }`, "user or a password"},
		{`harness: { provider: { id: "p", api: "a", baseUrl: "ftp://llm.test/v1" } }`, "no https or http url"},
		{`harness: { catalog: { openai: { baseUrl: "https://me:` + long + `@gw.test" } } }`, "user or a password"},
		{`harness: { catalog: { openai: { baseUrl: "https://me:hush%zz@gw.test" } } }`, "user or a password"},
		{`name: new URL("https://me:` + long + `@:x:/").href`, "Invalid URL"},
		{`name: (() => { throw new Error("cannot reach https://me:hush@h.test/x"); })()`, "cannot reach"},
	} {
		_, err := configured(t, "export default { "+c.text+" };", nil)
		if err == nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v", c.text, err)
		}
	}
	for _, url := range []string{"ftp://me:hush@h.test/x", "https://me:hush@/x", "https://me:hush@h.test", "https://me:" + long + "@h.test:0/x"} {
		if _, err := config.ParseRepoURL(url); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v", url, err)
		}
		if _, err := config.ParseHost(url); err == nil || !strings.Contains(err.Error(), "user or a password") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v", url, err)
		}
	}
	refused(t, instance(t, "ping", map[string]string{"jr2.config.ts": `import "https://me:xx@h.test/x.ts";`}), "syntax", "https://me:xxxxx@h.test")
	inst := load(t, instance(t, "review", map[string]string{"workflows/review.ts": imports + `export const machine = workspace(plain, { repos: { a: "https://me:hush@h.test/o/r" } });`}))
	if notes := strings.Join(inst.Notes, "\n"); !strings.Contains(notes, `"https://me:xxxxx@h.test/o/r" carries a password`) || strings.Contains(notes, "hush") {
		t.Errorf("got %s", notes)
	}
}

// TestMessagesStayOnOneLine: names and texts of the folder may hold anything.
func TestMessagesStayOnOneLine(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"workflow":       {"workflows/a\nb.ts": "throw 1"},
		"escape":         {"workflows/a\x1b[31m.ts": "throw 1"},
		"thrown":         {"workflows/ping.ts": "throw new Error('two\\nlines\\u2028three\\x1b[2J');"},
		"import":         {"workflows/ping.ts": "import './a\\nb.ts';"},
		"package":        {"workflows/ping.ts": "import 'a\\nb';"},
		"folder":         {"images/default/a\nb": "x"},
		"key":            {"jr2.config.ts": "export default { secrets: [{ 'a\\nb': 1 }] };"},
		"file of import": {"workflows/ping.ts": "import './a\\nb.ts';", "workflows/a\nb.ts": "throw 1"},
		"folder's name":  {"jr2.config.ts": "export default { harness: { catalog: { 'a\\nb': 1 } } };"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(context.Background(), config.LoadOptions{Dir: instance(t, "ping", files)})
			if err == nil {
				t.Fatal("nothing is refused")
			}
			for _, line := range lines(err) {
				if strings.ContainsAny(line, "\n\r\x1b\u2028") {
					t.Errorf("got %q", line)
				}
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "in\nstance")
	write(t, dir, map[string]string{
		"jr2.config.ts":     "export default { name: 'x', 'fla\\nvour': 1 };",
		"workflows/a\nb.js": "x", "package.json": "{ broken",
	})
	_, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "package.json") {
		t.Errorf("got %v", err)
	}
	write(t, dir, map[string]string{"package.json": `{"dependencies":{"@jr2/orchestrator":"^1\u000a"}}`})
	inst := load(t, dir)
	if len(inst.Notes) != 3 {
		t.Errorf("got %q", inst.Notes)
	}
	for _, note := range inst.Notes {
		if strings.Contains(note, "\n") {
			t.Errorf("got %q", note)
		}
	}
	nothing := filepath.Join(t.TempDir(), "no\nthing")
	if _, err := config.FindRoot(nothing); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

// TestWhatStandsInTheWay: a message names the file at fault and what is wrong with it.
func TestWhatStandsInTheWay(t *testing.T) {
	blamed := func(dir, file, workflow string, words ...string) {
		t.Helper()
		err := refused(t, dir, "syntax", words...)
		if err.File != filepath.Join(dir, file) || err.Workflow != workflow {
			t.Errorf("%q names %q of %q, want %s", err, err.File, err.Workflow, file)
		}
		if strings.Contains(err.Error(), "not there") || strings.Contains(err.Error(), "jr2.config.ts") {
			t.Errorf("got %q", err)
		}
	}
	link := func(dir, name, to string) string {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	blamed(instance(t, "ping", map[string]string{"package.json": "{ broken"}), "package.json", "", "package.json:1:", "no sound package.json")
	blamed(instance(t, "ping", map[string]string{"workflows/package.json": `{"type": }`}), "workflows/package.json", "", "no sound package.json")
	blamed(instance(t, "ping", map[string]string{"node_modules/p/package.json": "{ broken", "workflows/ping.ts": `import "p";`}), "node_modules/p/package.json", "", "no sound package.json")
	blamed(instance(t, "ping", map[string]string{"workflows/z.ts/x": "x"}), "workflows/z.ts", "z", "is a folder, not a module")
	blamed(link(instance(t, "ping", nil), "workflows/z.ts", "z.ts"), "workflows/z.ts", "z", "leads back to itself")
	blamed(instance(t, "ping", map[string]string{"workflows/ping.ts": `import "./sub.ts";`, "workflows/sub.ts/_x": "x"}), "workflows/ping.ts", "ping", `"./sub.ts" is a folder`)

	dangling := link(instance(t, "ping", nil), "workflows/z.ts", "nowhere.ts")
	if err := refused(t, dangling, "syntax", "symbolic link to \"nowhere.ts\", which is not there"); err.File != filepath.Join(dangling, "workflows/z.ts") {
		t.Errorf("got %q", err)
	}
	for _, name := range []string{"workflows/z.ts", "jr2.config.ts"} {
		outside := filepath.Join(t.TempDir(), "secret.ts")
		write(t, filepath.Dir(outside), map[string]string{"secret.ts": "export default {};"})
		dir := instance(t, "ping", nil)
		if name == "jr2.config.ts" {
			write(t, dir, map[string]string{name: ""})
		}
		err := refused(t, link(dir, name, outside), "outside")
		var escaped *config.OutsideError
		if !errors.As(err, &escaped) || escaped.Importer != filepath.Join(dir, name) || err.File != escaped.Importer {
			t.Errorf("%s: got %q of %+v", name, err, escaped)
		}
	}
}
