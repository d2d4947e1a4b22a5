package jr2_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist keeps the tables of docs honest: a test that a row names is there, and a row names one.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	for document, row := range map[string]string{"docs/field-cases.md": "| F", "docs/jarvis.md": "| A"} {
		text, err := os.ReadFile(document)
		must(t, err)
		named := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
		if len(named) == 0 {
			t.Fatalf("%s names no test", document)
		}
		for _, name := range named {
			if !hasTest(t, name[1], name[2]) {
				t.Errorf("%s: package %s has no %s", document, name[1], name[2])
			}
		}
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, row) && !strings.Contains(line, ".Test") {
				t.Errorf("%s: a row without a test: %s", document, line)
			}
		}
	}
}

// TestJarvisHasAllRows: none of A01 to A11 is forgotten.
func TestJarvisHasAllRows(t *testing.T) {
	text, err := os.ReadFile("docs/jarvis.md")
	must(t, err)
	for i := 1; i <= 11; i++ {
		if row := fmt.Sprintf("\n| A%02d ", i); strings.Count(string(text), row) != 1 {
			t.Errorf("docs/jarvis.md has not one row%s", row)
		}
	}
}

func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	must(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(source), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
