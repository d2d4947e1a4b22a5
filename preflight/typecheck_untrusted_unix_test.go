//go:build unix

package preflight_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jr2.dev/jr2/preflight"
)

// TestNothingOfAnUntrustedFolderRuns has the ways in which TypeScript's place in a folder leads to a program.
func TestNothingOfAnUntrustedFolderRuns(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"in the folder":   {"node_modules/typescript/package.json": `{"bin": {"tsc": "t.js"}}`, "node_modules/typescript/t.js": "ran"},
		"in a bin folder": {"node_modules/.bin/tsc": "#!/bin/sh\necho ran", "node_modules/.bin/node": "#!/bin/sh\necho ran"},
		"extended":        {"tsconfig.json": `{"extends": "./other.json", "compilerOptions": {"plugins": [{"name": "evil"}]}}`},
		"a script":        {"package.json": `{"scripts": {"prepare": "touch ran", "typecheck": "touch ran"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if files["tsconfig.json"] == "" {
				files["tsconfig.json"] = "{}"
			}
			result, err := preflight.Typecheck(t.Context(), instance(t, files), preflight.TypecheckOptions{
				Node: "no-such-node", Started: func() { t.Error("a compiler started") },
			})
			if err != nil || !result.Untrusted || result.Compiler != "" || result.Skipped != "nothing that an untrusted folder brings is run here" {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}

// TestTheCompilerGetsNoSecretOfTheCaller: the environment of this process has the caller's tokens in it.
func TestTheCompilerGetsNoSecretOfTheCaller(t *testing.T) {
	for _, name := range []string{"GITHUB_TOKEN", "KUBECONFIG", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "SSH_AUTH_SOCK", "HTTPS_PROXY", "HOME"} {
		t.Setenv(name, "/canary")
	}
	root := withCompiler(t, `console.log(JSON.stringify(process.env)); process.exit(1)`)
	_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true})
	var refused *preflight.TypecheckError
	if !errors.As(err, &refused) || len(refused.Output) != 1 {
		t.Fatalf("got %v, want the environment as the one line of the compiler", err)
	}
	var env map[string]string
	if err := json.Unmarshal([]byte(refused.Output[0]), &env); err != nil {
		t.Fatal(err)
	}
	for name, value := range env {
		if name != "PATH" && !strings.HasPrefix(name, "__") { // macOS adds names of its own
			t.Errorf("the compiler sees %s=%s", name, value)
		}
	}
}

// TestACompilerThatDoesNotEndIsStopped has the ways of not ending.
func TestACompilerThatDoesNotEndIsStopped(t *testing.T) {
	for name, script := range map[string]string{
		"a loop":             `for (;;);`,
		"a wait":             `setInterval(() => {}, 1000)`,
		"output without end": `setInterval(() => process.stdout.write("x".repeat(65536)), 0)`,
		"a child that waits": `require("child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" })`,
		"signals ignored":    `process.on("SIGTERM", () => {}); process.on("SIGINT", () => {}); setInterval(() => {}, 1000)`,
		"output closed":      `require("fs").closeSync(1); require("fs").closeSync(2); setInterval(() => {}, 1000)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := withCompiler(t, script)
			_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true, Limit: 300 * time.Millisecond})
			var unending *preflight.UnendingCompilerError
			if !errors.As(err, &unending) || unending.Limit != 300*time.Millisecond || !strings.Contains(err.Error(), "npx tsc --noEmit") {
				t.Errorf("got %v, want an UnendingCompilerError", err)
			}
		})
	}
}

// TestFilesThatAreNoneAreNamedAtOnce: a pipe has no end, a device no size, and a link may lead to a file of somebody else.
func TestFilesThatAreNoneAreNamedAtOnce(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, put := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"secret": func(path string) error { return os.Symlink(secret, path) },
		"sparse": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 3<<30)) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, name := range []string{"tsconfig.json", "node_modules/typescript/package.json", "node_modules/typescript/t.js"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				if kind == "sparse" && name != "node_modules/typescript/package.json" {
					t.Skip("only the compiler reads it")
				}
				root := instance(t, map[string]string{
					"tsconfig.json": "{}", "node_modules/typescript/package.json": `{"bin": {"tsc": "t.js"}}`, "node_modules/typescript/t.js": "",
				})
				path := filepath.Join(root, name)
				if err := errors.Join(os.Remove(path), put(path)); err != nil {
					t.Fatal(err)
				}
				_, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{
					Trusted: true, Started: func() { t.Error("the compiler started") },
				})
				if err == nil || !strings.Contains(err.Error(), filepath.Base(name)) || strings.Contains(err.Error(), "canary") {
					t.Errorf("got %v, want an error that names %s", err, name)
				}
			})
		}
	}
}
