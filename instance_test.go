package jr2_test

import (
	"errors"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

// TestBrokenInstances: what is wrong with the folder is told after the header and names the file or the part.
func TestBrokenInstances(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	open := strings.Replace(hold("3Gi", "1"), `"https://git.example.test/team/app.git"`, "open", 1)
	open = strings.Replace(open, "{ jr2Setup", "{ open, jr2Setup", 1)
	for name, test := range map[string]struct {
		files map[string]string
		says  []string
	}{
		"a module throws": {
			files: map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": "throw new Error(\"no luck\");\nexport const machine = 1;\n"},
			says:  []string{"error: ", "workflows/ping.ts:1:", "no luck"},
		},
		"no machine": {
			files: map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": "export const other = 1;\n"},
			says:  []string{"error: ", "workflows/ping.ts", "machine"},
		},
		"an open Repo Slot": {
			files: map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": open},
			says:  []string{"refusing: workflow \"hold\"", `Repo Slot "app"`, `customize(hold, { repos: { app: "<url>" } })`, "ADR-0051"},
		},
		"a Size below the floor": {
			files: map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("300Mi", "1")},
			says:  []string{"error: workflow \"hold\"", "300Mi", "256Mi", "ADR-0060"},
		},
		"a held name that is kept for jr2": {
			files: map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf(`secrets: [{ name: "JR2_X", value: "x", hosts: ["h.test"] }]`)},
			says:  []string{"error: ", "secrets[0].name", "JR2_"},
		},
		"a CA bundle that is not there": {
			files: map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf(`harness: { caBundle: "certs/ca.pem" }`)},
			says:  []string{"error: ", "harness.caBundle", "certs/ca.pem"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := w.up(t, folder(t, test.files), into("broken"))
			if told.err == nil {
				t.Fatalf("the converge went on:\n%s", told.lines)
			}
			if !strings.HasPrefix(told.lines, "jr2 up — instance") {
				t.Errorf("no header:\n%s", told.lines)
			}
			for _, part := range test.says {
				if !strings.Contains(told.lastLine(), part) {
					t.Errorf("%q does not say %q", told.lastLine(), part)
				}
			}
		})
	}
	told := w.up(t, folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": open}), into("broken"))
	var refusal *jr2.Refusal
	if !errors.As(told.err, &refusal) || refusal.Findings[0].Code != preflight.CodeOpenPart || refusal.Findings[0].Fix == "" {
		t.Errorf("the open part is no finding with a fix: %#v", told.err)
	}
}

// TestNoInstance: a folder that is none, and a cluster that is not named.
func TestNoInstance(t *testing.T) {
	_, err := jr2.Converge(t.Context(), jr2.Options{Dir: t.TempDir()})
	var missing *config.NotFoundError
	if !errors.As(err, &missing) {
		t.Errorf("an empty folder gave %v", err)
	}
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig})
	t.Setenv("KUBECONFIG", dir+"/none")
	if _, err := jr2.Converge(t.Context(), jr2.Options{Dir: dir}); !errors.Is(err, jr2.ErrNoContext) {
		t.Errorf("no kubeconfig gave %v", err)
	}
}

// TestUnreachableCluster is told soon, with the context and the cause.
func TestUnreachableCluster(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	told := w.up(t, dir, func(o *jr2.Options) { o.Config.Host = "https://127.0.0.1:1" })
	var unreachable *jr2.UnreachableError
	if !errors.As(told.err, &unreachable) || !strings.HasPrefix(told.lastLine(), "refusing: "+contextName+" cannot be reached — ") {
		t.Errorf("told %s", told.lastLine())
	}
}
