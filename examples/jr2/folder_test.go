package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
)

// hostileCompiler is an Instance whose own TypeScript writes its environment to a file.
func hostileCompiler(t *testing.T) (dir, wrote string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		devcluster.Missing(t, "node is not on PATH")
	}
	dir = t.TempDir()
	wrote = filepath.Join(dir, "wrote")
	for name, text := range map[string]string{
		"jr2.config.ts": `export default { name: "guest" };`, "tsconfig.json": "{}",
		"node_modules/typescript/package.json": `{"bin": {"tsc": "t.js"}}`,
		"node_modules/typescript/t.js":         `require("fs").writeFileSync(__dirname + "/../../wrote", JSON.stringify(process.env))`,
	} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir, wrote
}

// TestAFolderOfSomebodyElseRunsNothing: with --untrusted the compiler that a folder brings does not run, in any verb, and the output says what was
// left out. Without it the folder is the caller's own, and its compiler sees nothing of the caller's environment.
func TestAFolderOfSomebodyElseRunsNothing(t *testing.T) {
	isolated(t)
	t.Setenv("JR2_CANARY", "canary")
	dir, wrote := hostileCompiler(t)
	kubeconfig := filepath.Join(t.TempDir(), "config") // of a cluster at which nobody listens
	must(t, os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "nowhere",
"clusters": [{"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere"}}]}`), 0o600))
	for _, verb := range [][]string{{"check"}, {"plan"}, {"up", "--yes"}, {"down", "--yes"}, {"run", "w"}, {"runs"}, {"status", "abcdef"}} {
		s := newSession()
		_ = s.run(t.Context(), append(verb, dir, "--untrusted", "--kubeconfig", kubeconfig)...) // there is no cluster; how far each gets is not the matter
		if _, err := os.Stat(wrote); err == nil {
			t.Fatalf("%s ran a program of the folder", verb[0])
		}
		said := s.out.String() + s.err.String()
		typed := verb[0] == "check" || verb[0] == "plan" || verb[0] == "up"
		if typed && !strings.Contains(said, "the types of this instance were not checked") {
			t.Errorf("%s does not say that types were not checked:\n%s", verb[0], said)
		}
	}
	s := newSession()
	_ = s.run(t.Context(), "check", dir, "--kubeconfig", kubeconfig)
	env, err := os.ReadFile(wrote)
	if err != nil {
		t.Fatalf("the compiler of a folder of one's own did not run: %s", s.out.String()+s.err.String())
	}
	if strings.Contains(string(env), "canary") || strings.Contains(string(env), "KUBECONFIG") {
		t.Errorf("the compiler saw %s", env)
	}
}
