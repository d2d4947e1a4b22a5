package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// TestTheListHolds: every mutation of the list still finds the text that it replaces, and every case has one. Whether they are killed takes a
// compiler and minutes, and is for who changes a case.
func TestTheListHolds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, m := range all {
		if _, err := m.mutated(root); err != nil {
			t.Errorf("%s %s: %v:\n%s", m.fieldCase, m.test, err, m.old)
		}
		has[m.fieldCase] = true
	}
	for i := 1; i <= 30; i++ {
		if name := fmt.Sprintf("F%02d", i); !has[name] {
			t.Errorf("%s has no mutation", name)
		}
	}
}

func TestParse(t *testing.T) {
	all, err := parse("# a word\n\nF01 a/b.go a.TestX/a row\n-\told\n-\n+new\n\n\n# and another\nF02 c.go c.TestY\n-x\n")
	want := []mutation{{"F01", "a/b.go", "a.TestX/a row", "\told\n", "new"}, {"F02", "c.go", "c.TestY", "x", ""}}
	if err != nil || len(all) != 2 || all[0] != want[0] || all[1] != want[1] {
		t.Errorf("got %+v, %v", all, err)
	}
	for _, bad := range []string{"F01 a.go", "F01 a.go a.TestX", "F01 a.go a.TestX\n-x\n+x", "-x\n+y", "F01 a.go a.TestX\nF02 b.go b.TestY\n-x"} {
		if all, err := parse(bad); err == nil {
			t.Errorf("%q: got %+v", bad, all)
		}
	}
}

// TestVerdicts tries mutations of a small module.
func TestVerdicts(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module small\n\ngo 1.24\n",
		"p/p.go":      "package p\n\nfunc Add(a, b int) int { return a + b }\n\nfunc Free() int { return 1 }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tfor _, name := range []string{\"one and two\"} {\n\t\tt.Run(name, func(t *testing.T) {\n\t\t\tif Add(1, 2) != 3 {\n\t\t\t\tt.Error(\"no\")\n\t\t\t}\n\t\t})\n\t}\n}\n\nfunc TestRed(t *testing.T) { t.Error(\"red\") }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows := map[string]struct {
		m    mutation
		want string
	}{
		"killed":           {mutation{"F01", "p/p.go", "p.TestAdd/one and two", "a + b", "a - b"}, "<nil>"},
		"survived":         {mutation{"F01", "p/p.go", "p.TestAdd/one and two", "return 1", "return 2"}, "SURVIVED"},
		"does not compile": {mutation{"F01", "p/p.go", "p.TestAdd/one and two", "a + b", "a + c"}, "broken: the test did not run\n"},
		"no such row":      {mutation{"F01", "p/p.go", "p.TestAdd/another", "a + b", "a - b"}, "broken: without it the test does not pass, or there is none"},
		"no such test":     {mutation{"F01", "p/p.go", "p.TestNone", "a + b", "a - b"}, "broken: without it the test does not pass, or there is none"},
		"red already":      {mutation{"F01", "p/p.go", "p.TestRed", "a + b", "a - b"}, "broken: without it the test does not pass, or there is none"},
		"no such text":     {mutation{"F01", "p/p.go", "p.TestAdd", "a * b", "a - b"}, "broken: the text is 0 times in p/p.go"},
		"the text twice":   {mutation{"F01", "p/p.go", "p.TestAdd", "return", "panic"}, "broken: the text is 2 times in p/p.go"},
	}
	var all []mutation
	for _, test := range rows {
		all = append(all, test.m)
	}
	passes, err := unmutated(t.Context(), dir, all)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range rows {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(test.m.try(t.Context(), dir, passes)); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	text, err := os.ReadFile(filepath.Join(dir, "p/p.go"))
	if err != nil || !strings.Contains(string(text), "a + b") {
		t.Errorf("the file was changed: %s, %v", text, err)
	}
}
