package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A mutation takes one fix out.
type mutation struct {
	fieldCase string // "F06"
	file      string // "preflight/setlevel.go"
	test      string // "preflight.TestA09PodSecurity/F06", as docs/field-cases.md writes it
	old, new  string
}

// parse reads the list. An entry is a line with the case, the file and the test; then, marked as in a diff, the lines to take out ("-") and those to
// put there instead ("+"). A blank line ends it, and a line that begins with # says something to who reads it.
func parse(text string) (all []mutation, err error) {
	for n, entry := range regexp.MustCompile(`\n{2,}`).Split(strings.TrimSpace(text), -1) {
		m := mutation{}
		var old, fresh []string
		for _, line := range strings.Split(entry, "\n") {
			switch mark := line[:1]; {
			case mark == "#":
			case mark == "-":
				old = append(old, line[1:])
			case mark == "+":
				fresh = append(fresh, line[1:])
			default:
				fields := strings.SplitN(line, " ", 3)
				if len(fields) != 3 || m.fieldCase != "" {
					return nil, fmt.Errorf("entry %d: want one line with a case, a file and a test: %q", n+1, line)
				}
				m.fieldCase, m.file, m.test = fields[0], fields[1], fields[2]
			}
		}
		m.old, m.new = strings.Join(old, "\n"), strings.Join(fresh, "\n")
		if m.fieldCase == "" && m.old == "" {
			continue // a comment of its own
		}
		if m.fieldCase == "" || m.old == "" || m.old == m.new {
			return nil, fmt.Errorf("entry %d: a mutation of nothing: %q", n+1, entry)
		}
		all = append(all, m)
	}
	return all, nil
}

// mutated is the file with the fix taken out.
func (m mutation) mutated(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("the text is %d times in %s", n, m.file)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}

// name is the test as go test writes it.
func (m mutation) name() string { return strings.ReplaceAll(m.test, " ", "_") }

// levels are the package of the test and the patterns of its name and rows.
func (m mutation) levels() (pkg string, patterns []string) {
	pkg, name, _ := strings.Cut(m.test, ".Test")
	for _, level := range strings.Split("Test"+name, "/") {
		patterns = append(patterns, "^"+regexp.QuoteMeta(level)+"$")
	}
	return pkg, patterns
}
