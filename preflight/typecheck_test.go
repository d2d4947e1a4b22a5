package preflight_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// instance makes a folder of these files: path → text.
func instance(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// withCompiler makes an Instance whose own TypeScript is this script: for what a real compiler can't be made to do on demand.
func withCompiler(t *testing.T, script string) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		devcluster.Missing(t, "node is not on PATH")
	}
	return instance(t, map[string]string{
		"tsconfig.json":                        "{}",
		"node_modules/typescript/package.json": `{"bin": {"tsc": "./bin/tsc", "tsserver": "./bin/tsserver"}}`,
		"node_modules/typescript/bin/tsc":      script,
	})
}

func TestTypecheckIsSkippedAloud(t *testing.T) {
	result, err := preflight.Typecheck(t.Context(), instance(t, map[string]string{"jr2.config.ts": ""}), preflight.TypecheckOptions{
		Node: "no-such-node", Started: func() { t.Error("no compiler started") },
	})
	if err != nil || result.Skipped != "the instance has no tsconfig.json" || result.Compiler != "" {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestTypecheckCallsTheCompiler(t *testing.T) {
	root := withCompiler(t, `if (process.argv.slice(2).join(" ") !== "--noEmit --pretty false") throw new Error(process.argv.join(" "));
if (process.cwd() !== require("fs").realpathSync(__dirname + "/../../..")) throw new Error(process.cwd());`)
	started := 0
	result, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true, Started: func() { started++ }})
	if err != nil || started != 1 || result.Skipped != "" || result.Compiler != filepath.Join(root, "node_modules/typescript/bin/tsc") {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestTypecheckRefusesWhatDoesNotCompile(t *testing.T) {
	root := withCompiler(t, `console.error("second\r\nthird\n"); console.log("\nfirst(1,1): error TS1: no\n  of the same"); process.exitCode = 2`)
	_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true})
	var refused *preflight.TypecheckError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a TypecheckError", err)
	}
	const want = `refusing: the instance does not compile. Nothing was built and nothing was applied.
  first(1,1): error TS1: no
    of the same
  second
  third`
	if err.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", err, want)
	}
}

func TestTypecheckBoundsTheOutput(t *testing.T) {
	root := withCompiler(t, `const fs = require("fs");
for (let i = 0; i < 1000; i++) { fs.writeSync(1, "é".repeat(600) + "\n"); fs.writeSync(2, "b".repeat(999) + "\n"); }
process.exit(1)`)
	_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true})
	var refused *preflight.TypecheckError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a TypecheckError", err)
	}
	if size := len(err.Error()); size > 140<<10 {
		t.Errorf("the error has %d bytes", size)
	}
	cut := slices.DeleteFunc(slices.Clone(refused.Output), func(line string) bool { return !strings.HasPrefix(line, "… (") })
	if want := []string{"… (1135464 more bytes)", "… (934464 more bytes)"}; !slices.Equal(cut, want) {
		t.Errorf("got %q, want %q", cut, want)
	}
}

func TestTypecheckTellsACrashFromAVerdict(t *testing.T) {
	root := withCompiler(t, `console.log("half a word"); process.kill(process.pid, "SIGKILL")`)
	_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true})
	var refused *preflight.TypecheckError
	if err == nil || errors.As(err, &refused) || !strings.Contains(err.Error(), "signal: killed\n  half a word") {
		t.Errorf("got %v", err)
	}
}

func TestTypecheckWithoutNode(t *testing.T) {
	root := instance(t, map[string]string{
		"tsconfig.json":                        "{}",
		"node_modules/typescript/package.json": `{"bin": {"tsc": "tsc.js"}}`,
		"node_modules/typescript/tsc.js":       "",
	})
	t.Setenv("PATH", t.TempDir())
	for _, name := range []string{"", "no-such-node", filepath.Join(root, "node")} {
		_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true, Node: name})
		var none *preflight.NoNodeError
		if !errors.As(err, &none) || !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestTypecheckWithoutCompiler(t *testing.T) {
	const manifest = "node_modules/typescript/package.json"
	for name, test := range map[string]struct {
		files  map[string]string
		reason string
	}{
		"nothing installed": {reason: "no node_modules/typescript there or above"},
		"broken manifest":   {files: map[string]string{manifest: "{"}, reason: "unexpected end of JSON input"},
		"no bin":            {files: map[string]string{manifest: "{}"}, reason: "its bin field has no tsc"},
		"bin of another":    {files: map[string]string{manifest: `{"bin": {"tsserver": "x"}}`}, reason: "its bin field has no tsc"},
		"no such file":      {files: map[string]string{manifest: `{"bin": {"tsc": "bin/tsc"}}`}, reason: "bin names tsc \"bin/tsc\", which is missing"},
		"a folder":          {files: map[string]string{manifest: `{"bin": {"tsc": "."}}`}, reason: "is a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"tsconfig.json": "{}"}
			for path, text := range test.files {
				files[path] = text
			}
			root := instance(t, files)
			_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true})
			var none *preflight.NoCompilerError
			if !errors.As(err, &none) || none.Root != root || !strings.Contains(err.Error(), test.reason) || !strings.Contains(err.Error(), "npm install") {
				t.Errorf("got %v", err)
			}
		})
	}
}
