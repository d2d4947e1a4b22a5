package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

func TestDotEnv(t *testing.T) {
	for text, want := range map[string]string{
		"A=1":                              "A=1",
		"\uFEFFA=1\r\nB=2\r\n":             "A=1|B=2",
		" export  A = x y  # note":         "A=x y",
		"exported=1":                       "exported=1",
		"A=":                               "A=",
		"A=\nB=1":                          "A=|B=1",
		"A='lit $B \\n # in'":              "A=lit $B \\n # in",
		`A="a\n\t\"q\" \\ \$x \q"`:         "A=a\n\t\"q\" \\ \\$x \\q",
		"A=\"two\nlines\" # note\nB=2":     "A=two\nlines|B=2",
		"A='two\nlines'":                   "A=two\nlines",
		"A='open\nB=2":                     "B=2",
		"A=\"x\" y\nB=2":                   "B=2",
		"1A=x\nA-B=x\n# c\n\nnoise\nB = 2": "B=2",
		"A=1#2":                            "A=1",
		"A=x\nA=y":                         "A=x|A=y",
		"A=it's":                           "A=it's",
		"A = \"\"":                         "A=",
		"export=1":                         "export=1",
	} {
		var got []string
		for _, a := range config.ParseDotEnv(text) {
			got = append(got, a.Name+"="+a.Value.Reveal())
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: got %q, want %q", text, strings.Join(got, "|"), want)
		}
	}
}

func TestReadDotEnv(t *testing.T) {
	dir := t.TempDir()
	if got, err := config.ReadDotEnv(filepath.Join(dir, ".env")); got != nil || err != nil {
		t.Errorf("no file: %v %v", got, err)
	}
	if _, err := config.ReadDotEnv(dir); err == nil {
		t.Error("a folder passed")
	}
	write(t, dir, map[string]string{".env": "B=2\nA=hush\nB=3\nC=4\nD=5\n"})
	file, err := config.ReadDotEnv(filepath.Join(dir, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v", file, file); strings.Contains(text, "hush") {
		t.Error("values print")
	}
	merged, applied := config.MergeEnv(file, map[string]string{"C": "", "X": "1"})
	if !reflect.DeepEqual(applied, []string{"B", "A", "D"}) {
		t.Errorf("applied %v", applied)
	}
	if !reflect.DeepEqual(merged, map[string]string{"B": "3", "A": "hush", "C": "", "D": "5", "X": "1"}) {
		t.Errorf("merged %v", merged)
	}
	_ = os.Getenv
}

func TestQuantities(t *testing.T) {
	for in, want := range map[any]int64{
		"2Gi": 2 << 30, " 512Mi ": 512 << 20, "1.5Gi": 3 << 29, ".5Ki": 512, "1000": 1000, "1k": 1000, "1M": 1e6, "1m": 1, "1500m": 2, "2.": 2,
		"1Ti": 1 << 40, "7Ei": 7 << 60, json.Number("1.5"): 2, json.Number("1e3"): 1000, 5: 5, int64(6): 6, 2.25: 3,
	} {
		if got, err := config.ParseMemory(in); err != nil || got != want {
			t.Errorf("%v: got %d %v, want %d", in, got, err, want)
		}
	}
	for in, want := range map[any]int64{"500m": 500, "1": 1000, ".1": 100, "0.0001": 1, "1.5": 1500, json.Number("0.3"): 300, "1k": 1000000, 2: 2000} {
		if got, err := config.ParseCPU(in); err != nil || got != want {
			t.Errorf("%v: got %d %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []any{"", " ", "0", "0Gi", "-1", "+1", "1e3", "1n", "1u", "1gi", "Gi", "1 Gi", ".", "1.2.3", "8Ei", "9999999999999999999", nil, true, json.Number("-1"), json.Number("1e400"),
		json.Number("1e-400"), "1" + strings.Repeat("0", 100), []string{"1"}, 0, -2.5} {
		if got, err := config.ParseMemory(in); err == nil {
			t.Errorf("%v is taken as %d", in, got)
		}
	}
	for bytes, want := range map[int64]string{1 << 40: "1024Gi", 3 << 29: "1536Mi", 1 << 10: "1Ki", 1000: "1000", 0: "0"} {
		if got := config.FormatMemory(bytes); got != want {
			t.Errorf("%d: got %s", bytes, got)
		}
	}
	for millis, want := range map[int64]string{1000: "1", 64000: "64", 1500: "1500m", 50: "50m"} {
		if got := config.FormatCPU(millis); got != want {
			t.Errorf("%d: got %s", millis, got)
		}
	}
}

func TestSizesFloor(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	inst := func(memory, cpu int64) *config.Instance {
		return &config.Instance{Workflows: []config.Workflow{{Name: "w", Workspaces: []config.Workspace{{Size: config.Limits{Memory: n(memory), CPU: n(cpu)}}}}}}
	}
	sizes, err := config.Sizes(inst(320<<20, 51))
	if err != nil || sizes[0].Harness.Memory != config.HarnessFloor || sizes[0].Harness.CPU != 1 || sizes[0].SharedMemory != 64<<20 {
		t.Errorf("the smallest Size: %+v %v", sizes, err)
	}
	for _, small := range []*config.Instance{inst(320<<20-1, 51), inst(320<<20, 50), inst(1, 1000)} {
		if _, err := config.Sizes(small); err == nil || !strings.Contains(err.Error(), "raise the limit (ADR-0060)") {
			t.Errorf("got %v", err)
		}
	}
	kit, err := config.Sizes(&config.Instance{Workflows: []config.Workflow{{Name: "w", Workspaces: []config.Workspace{{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	wantSize(t, kit[0], "2Gi", "kit", "1", "kit", "1984Mi", "950m", "496Mi")
}

func TestRepoIdentity(t *testing.T) {
	for url, want := range map[string]string{
		"https://Git.Example.test/Team/App.git":    "git.example.test/Team/App",
		" https://u:p@h.test:443/o/r/ ":            "h.test/o/r",
		"https://h.test:8443/o/r":                  "h.test:8443/o/r",
		"git@H.test:o/r.git":                       "h.test/o/r",
		"h.test:o/r":                               "h.test/o/r",
		"ssh://git@h.test:22/o/./x/../r.git":       "h.test/o/r",
		"git+ssh://h.test:2222/o/r":                "h.test:2222/o/r",
		"git://h.test:9418/o/r":                    "h.test/o/r",
		"http://h.test:80//o//r?x=1#y":             "h.test/o/r",
		"HTTPS://h.test/o/r/.git":                  "h.test/o/r",
		"https://h.test/o/r.git.git":               "h.test/o/r.git",
		"ssh://[::1]/o/r":                          "[::1]/o/r",
		"file:///srv/git/../repos/a":               "/srv/repos/a",
		"/srv/repos//a/":                           "/srv/repos/a",
		"file:///srv/a%20b":                        "/srv/a b",
		"https://h.test/~me/r":                     "h.test/~me/r",
		"https://git.example.test/team/app.git":    "git.example.test/team/app",
		"git@git.example.test:team/handbook.git":   "git.example.test/team/handbook",
		"ssh://git@git.example.test/team/handbook": "git.example.test/team/handbook",
	} {
		got, err := config.ParseRepoURL(url)
		if err != nil || got.Identity != want {
			t.Errorf("%q: got %q %v, want %q", url, got.Identity, err, want)
		}
	}
	for _, url := range []string{"", "  ", "-x", "--upload-pack=x", "./local", "../x", "o/r", "ftp://h/x", "https://", "https://h.test", "https://h.test/", "https:///x", "h.test:", "/", "https://h.test:0/x",
		"https://h.test:99999/x", "https://h st/x", "file://host/x", "https://h.test/.git", "ext::sh -c x", "https://-h/x", "git@-oProxy:x"} {
		if got, err := config.ParseRepoURL(url); err == nil {
			t.Errorf("%q is taken as %+v", url, got)
		}
	}
	if got, _ := config.ParseRepoURL("https://h.test/o/" + strings.Repeat("A_", 40)); len(got.Key) > 49 || !strings.HasPrefix(got.Key, "a-a-") {
		t.Error(got.Key)
	}
	if got, _ := config.ParseRepoURL("https://h.test/o/___"); !strings.HasPrefix(got.Key, "repo-") {
		t.Error(got.Key)
	}
}

func TestCredentialMatch(t *testing.T) {
	git := config.Git{Credentials: []config.GitCredential{{Match: "*", Token: "ALL"}, {Match: "h.test/", Token: "ONE"}, {Match: "h.test/o/", SSHKey: "key"}, {Match: "h.test/o/", Token: "LATE"}}}
	for url, want := range map[string]string{
		"https://x.test/a":   "ALL " + config.TokenSecretName("*"),
		"https://h.test/x":   "ONE " + config.TokenSecretName("h.test/"),
		"https://h.test/o/r": " ",
		"git@h.test:o/r":     " key",
		"git://h.test/x":     " ",
		"/srv/x":             " ",
	} {
		a, err := config.ParseRepoURL(url)
		if err != nil {
			t.Fatal(err)
		}
		c, ok := git.Credential(config.Repo{Scheme: a.Scheme, Identity: a.Identity})
		if got := c.TokenEnv + " " + c.SecretName; !ok || got != want {
			t.Errorf("%s: got %q", url, got)
		}
	}
	if _, ok := (config.Git{}).Match("h.test/o/r"); ok {
		t.Error("no entry matches")
	}
}

func TestValidateGoValue(t *testing.T) {
	good := func() *config.Instance {
		return &config.Instance{Name: "team-a", KitVersion: "0.3.0", Workflows: []config.Workflow{{
			Name:       "w",
			Agents:     []config.Agent{{Name: "a", Model: "p/m", Access: config.AccessNone}},
			Workspaces: []config.Workspace{{Repos: []config.RepoSlot{{Slot: "app", State: config.SlotBound, URL: "https://h.test/o/r"}}}},
		}}}
	}
	if err := config.Validate(good()); err != nil {
		t.Fatal(err)
	}
	zero := int64(0)
	for name, break_ := range map[string]func(*config.Instance){
		"name":          func(i *config.Instance) { i.Name = "No" },
		"selector":      func(i *config.Instance) { i.Sandbox.NodeSelector = map[string]string{"a b": "c"} },
		"size":          func(i *config.Instance) { i.Sandbox.Resources.CPU = &zero },
		"workflow name": func(i *config.Instance) { i.Workflows[0].Name = "a b" },
		"twice":         func(i *config.Instance) { i.Workflows = append(i.Workflows, i.Workflows[0]) },
		"model":         func(i *config.Instance) { i.Workflows[0].Agents[0].Model = "" },
		"access":        func(i *config.Instance) { i.Workflows[0].Agents[0].Access = "" },
		"no slots":      func(i *config.Instance) { i.Workflows[0].Workspaces[0].Repos = nil },
		"slot":          func(i *config.Instance) { i.Workflows[0].Workspaces[0].Repos[0].Slot = "1" },
		"url":           func(i *config.Instance) { i.Workflows[0].Workspaces[0].Repos[0].URL = "./x" },
		"state":         func(i *config.Instance) { i.Workflows[0].Workspaces[0].Repos[0].State = "" },
		"user size":     func(i *config.Instance) { one := int64(1); i.Workflows[0].Workspaces[0].UserSize.CPU = &one },
	} {
		inst := good()
		break_(inst)
		if err := config.Validate(inst); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	inst := good()
	inst.Workflows[0].Agents[0].Model = ""
	inst.Workflows[0].OpenParts = []config.OpenPart{{Path: []string{}, Kind: config.OpenAgent, Slot: "a"}}
	if err := config.Validate(inst); err != nil {
		t.Error(err)
	}
}
