package devcluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const typescriptVersion = "5.9.3"

// TypeScript returns a folder whose node_modules holds a real TypeScript, fetched once per machine.
func TypeScript(t testing.TB) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			Missing(t, tool+" is not on PATH")
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	home := filepath.Join(cache, "jr2-tests", "typescript-"+typescriptVersion)
	if _, err := os.Stat(home); err == nil {
		return home
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(home), "fetching-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	fetch := exec.CommandContext(t.Context(), "npm", "install", "--prefix", fresh, "--ignore-scripts", "--no-audit", "--no-fund", "typescript@"+typescriptVersion)
	if output, err := fetch.CombinedOutput(); err != nil {
		Missing(t, "npm cannot fetch TypeScript: "+err.Error()+"\n"+string(output))
	}
	// Another process may have been faster; what it brought is the same.
	if err := os.Rename(fresh, home); err != nil && !errors.Is(err, os.ErrExist) {
		if _, gone := os.Stat(home); gone != nil {
			t.Fatal(err)
		}
	}
	return home
}
