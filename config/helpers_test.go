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

const samples = "../examples/instances/"

// instance copies a sample into a folder of its own and lays files over it; an empty text removes a file.
func instance(t *testing.T, sample string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fx-"+sample)
	if err := os.CopyFS(dir, os.DirFS(samples+sample)); err != nil {
		t.Fatal(err)
	}
	if sample == "hold" {
		write(t, dir, map[string]string{"images/default/Dockerfile": holdDockerfile})
	}
	write(t, dir, files)
	return dir
}

// holdDockerfile is the image of the sample as the specification has it. The example leaves it out, so that it converges where no
// public registry can be reached.
const holdDockerfile = `FROM node:24-slim
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates
`

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func load(t *testing.T, dir string) *config.Instance {
	t.Helper()
	inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return inst
}

// configured loads a folder that has nothing but a configuration.
func configured(t *testing.T, text string, env map[string]string) (*config.Instance, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my-instance")
	write(t, dir, map[string]string{"jr2.config.ts": text})
	return config.Load(context.Background(), config.LoadOptions{Dir: dir, Env: env})
}

// refused loads and wants a *ModuleError of a rule whose text holds every word.
func refused(t *testing.T, dir, rule string, words ...string) *config.ModuleError {
	t.Helper()
	_, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
	var module *config.ModuleError
	if !errors.As(err, &module) {
		t.Fatalf("got %v, want a ModuleError of rule %s", err, rule)
	}
	if module.Rule != rule {
		t.Errorf("rule %s, want %s: %v", module.Rule, rule, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	return module
}

// lines are the texts of all problems that an error puts together.
func lines(err error) []string {
	if several, ok := err.(interface{ Messages() []string }); ok {
		return several.Messages()
	}
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}
