package build

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A module without requirements takes a moment to build.
func hello(t *testing.T) (tool Tool, root string) {
	t.Helper()
	root = t.TempDir()
	dir := filepath.Join(root, "source")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go":  "package main\n\nvar word string\n\nfunc main() { println(word) }\n",
		"note.txt": "a file of the module",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Tool{
		Name: "hello", Module: "example.com/hello", Packages: []string{dir + "/main.go"}, LDFlags: "-X main.word=moin",
		Files: map[string]string{"source/note.txt": "note"},
	}, root
}

func TestBuild(t *testing.T) {
	t.Parallel()
	tool, work := hello(t)
	var lines []string
	cache := &Cache{Log: func(line string) { lines = append(lines, line) }}
	if err := cache.build(t.Context(), tool, work, []byte("module example.com/hello\n"), nil); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(work, "bin", "main")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "moin" {
		t.Errorf("it says %q, %v", out, err)
	}
	if note, err := os.ReadFile(filepath.Join(work, "bin", "note")); err != nil || string(note) != "a file of the module" {
		t.Errorf("the file is %q, %v", note, err)
	}
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "building hello (first time") || !strings.HasPrefix(lines[len(lines)-1], "built hello in") {
		t.Errorf("the progress is %q", lines)
	}
}

func TestBuildErrorHasTheOutput(t *testing.T) {
	t.Parallel()
	tool, work := hello(t)
	if err := os.WriteFile(tool.Packages[0], []byte("package main\n\nfunc main() { undefinedThing() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := (&Cache{}).build(t.Context(), tool, work, []byte("module example.com/hello\n"), nil)
	var failed *Error
	if !errors.As(err, &failed) || failed.Tool != "hello" || !strings.Contains(err.Error(), "undefinedThing") {
		t.Errorf("the error is %v", err)
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	t.Parallel()
	tool, work := hello(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&Cache{}).build(ctx, tool, work, []byte("module example.com/hello\n"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// What is shown here is the cache, not the compiler.
func TestEnsureBuildsOnce(t *testing.T) {
	t.Parallel()
	tool := ControllerGen()
	var mu sync.Mutex
	built := 0
	cache := &Cache{Dir: t.TempDir(), Log: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(line, "built ") {
			built++
		}
	}}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			bin, err := cache.Ensure(t.Context(), tool)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(bin, "controller-gen")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if built != 1 {
		t.Errorf("built %d times", built)
	}
	left, err := filepath.Glob(filepath.Join(cache.Dir, "*-building-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKeyDependsOnAllThatGoesIn(t *testing.T) {
	t.Parallel()
	base := Kwok()
	mod, sum, err := base.pins()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{base.key(mod, sum): "base"}
	variants := map[string]string{
		"mod": base.key(append([]byte("//\n"), mod...), sum),
		"sum": base.key(mod, append([]byte("\n"), sum...)),
	}
	for name, change := range map[string]func(*Tool){
		"ldflags":  func(t *Tool) { t.LDFlags = "-s" },
		"tags":     func(t *Tool) { t.Tags = "x" },
		"cgo":      func(t *Tool) { t.CGO = true },
		"packages": func(t *Tool) { t.Packages = nil },
		"files":    func(t *Tool) { t.Files = nil },
	} {
		tool := base
		change(&tool)
		variants[name] = tool.key(mod, sum)
	}
	for name, key := range variants {
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
	}
}

func TestToolsHavePins(t *testing.T) {
	t.Parallel()
	for _, tool := range Tools() {
		if _, _, err := tool.pins(); err != nil {
			t.Error(err)
		}
		if found, ok := ToolNamed(tool.Name); !ok || found.Module != tool.Module {
			t.Errorf("%s is not found by its name", tool.Name)
		}
	}
	if _, ok := ToolNamed("nothing"); ok {
		t.Error("found a tool that is not there")
	}
}
