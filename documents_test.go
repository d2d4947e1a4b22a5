package jr2_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist keeps the tables of docs honest: a test that a row names is there, and a row names one.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
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

// TestPromisesNameATestForEachLine: a promise of these pages without a test is none. Their tables of promises have three columns.
func TestPromisesNameATestForEachLine(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{"docs/ownership.md": 20, "docs/security.md": 10} {
		text, err := os.ReadFile(page)
		must(t, err)
		promises := 0
		for _, line := range strings.Split(string(text), "\n") {
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			if !strings.HasPrefix(line, "| ") || len(cells) != 3 || cells[2] == "test" || cells[2] == "---" {
				continue
			}
			promises++
			named := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(cells[2], -1)
			if len(named) == 0 {
				t.Errorf("%s: no test: %s", page, line)
			}
			for _, name := range named {
				pkg := name[1]
				if pkg == "jr2" {
					pkg = "."
				}
				if !hasTest(t, pkg, name[2]) {
					t.Errorf("%s: package %s has no %s", page, name[1], name[2])
				}
			}
		}
		if promises < least {
			t.Errorf("%s: only %d promises were found", page, promises)
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

// TestFieldCasesHaveSiblings: each case names the test of the case and two of siblings, and all of them are there, row by row.
func TestFieldCasesHaveSiblings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/field-cases.md")
	must(t, err)
	_, table, found := strings.Cut(string(text), "\n## Siblings\n")
	if !found {
		t.Fatal("docs/field-cases.md has no table of siblings")
	}
	tests := testFiles{}
	var required []string
	for i := 1; i <= 30; i++ {
		required = append(required, fmt.Sprintf("F%02d", i))
	}
	names := regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(table, "\n") {
		if !strings.HasPrefix(line, "| F") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 {
			t.Fatalf("%d columns: %s", len(cells), line)
		}
		required = slices.DeleteFunc(required, func(c string) bool { return c == cells[0] })
		var all []string
		for column, least := range map[int]int{1: 1, 2: 2} {
			of := names.FindAllStringSubmatch(cells[column], -1)
			if len(of) < least {
				t.Errorf("%s names %d tests in column %d: %s", cells[0], len(of), column+1, line)
			}
			for _, name := range of {
				all = append(all, name[1])
			}
		}
		slices.Sort(all)
		if len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Errorf("%s names a test twice: %s", cells[0], line)
		}
		for _, name := range all {
			tests.hasRow(t, name)
		}
	}
	if len(required) > 0 {
		t.Errorf("docs/field-cases.md names no siblings of %v", required)
	}
}

// hasRow fails the test unless "package.TestName" or "package.TestName/row" is there: a row is a string of that test, which runs rows, or of a
// function of the package that it calls for them.
func (f testFiles) hasRow(t *testing.T, name string) {
	t.Helper()
	pkg, rest, ok := strings.Cut(name, ".Test")
	if !ok {
		t.Errorf("docs/field-cases.md: %q is no name of a test", name)
		return
	}
	test, row, isRow := strings.Cut("Test"+rest, "/")
	body := f.bodyOf(t, pkg, test)
	switch {
	case body == nil:
		t.Errorf("docs/field-cases.md: package %s has no %s", pkg, test)
	case isRow && !hasSubtest(append(f.called(t, pkg, body), body), row):
		t.Errorf("docs/field-cases.md: %s of package %s runs no row %q", test, pkg, row)
	}
}

// testFiles are the functions of packages' tests, by package and name, each package read once.
type testFiles map[string]map[string]*ast.BlockStmt

// bodyOf finds a test in the files of a package; nil when there is none.
func (f testFiles) bodyOf(t *testing.T, pkg, name string) *ast.BlockStmt {
	t.Helper()
	if f[pkg] == nil {
		f[pkg] = map[string]*ast.BlockStmt{}
		files, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
		must(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			must(t, err)
			for _, d := range parsed.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					f[pkg][fn.Name.Name] = fn.Body
				}
			}
		}
	}
	return f[pkg][name]
}

// called are the bodies of those functions of a package's tests that a test calls without arguments, as it does for its rows.
func (f testFiles) called(t *testing.T, pkg string, body *ast.BlockStmt) (bodies []*ast.BlockStmt) {
	t.Helper()
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 0 {
			if name, ok := call.Fun.(*ast.Ident); ok {
				if of := f.bodyOf(t, pkg, name.Name); of != nil {
					bodies = append(bodies, of)
				}
			}
		}
		return true
	})
	return bodies
}

// hasSubtest says whether one of the bodies runs subtests, and one holds the name of this one as a string.
func hasSubtest(bodies []*ast.BlockStmt, row string) bool {
	runs, named := false, false
	for _, body := range bodies {
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				runs = runs || n.Sel.Name == "Run"
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				named = named || n.Kind == token.STRING && err == nil && text == row
			}
			return true
		})
	}
	return runs && named
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
