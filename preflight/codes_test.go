package preflight_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jr2.dev/jr2/preflight"
)

// TestCodesAreAll: each constant of a code is listed, once, and no code has two constants.
func TestCodesAreAll(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				code, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				declared = append(declared, code)
			}
			return true
		})
	}
	slices.Sort(declared)
	if codes := preflight.Codes(); !slices.Equal(codes, declared) || len(slices.Compact(slices.Clone(declared))) != len(declared) {
		t.Errorf("listed\n%s\ndeclared\n%s", strings.Join(codes, " "), strings.Join(declared, " "))
	}
}
