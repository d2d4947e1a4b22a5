package jr2_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFieldCasesNameTestsThatExist keeps docs/field-cases.md honest: a test that it names is there.
func TestFieldCasesNameTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("docs/field-cases.md")
	must(t, err)
	named := regexp.MustCompile("`([a-z]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) == 0 {
		t.Fatal("no test is named")
	}
	for _, name := range named {
		files, err := filepath.Glob(filepath.Join(name[1], "*_test.go"))
		must(t, err)
		found := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			must(t, err)
			found = found || strings.Contains(string(source), "\nfunc "+name[2]+"(t *testing.T)")
		}
		if !found {
			t.Errorf("package %s has no %s", name[1], name[2])
		}
	}
	for _, row := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(row, "| F") && !strings.Contains(row, ".Test") {
			t.Errorf("a row without a test: %s", row)
		}
	}
}
