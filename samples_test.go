package jr2_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// document is the source document; the golden tests compare with its own text.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("internal/seed/testdata/shared-cluster.txt")
	must(t, err)
	return string(text)
}

// sample cuts a sample out of the document: from the first line that starts with from, to the line that starts with to.
func sample(t *testing.T, from, to string) []string {
	t.Helper()
	lines := strings.Split(document(t), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, from) {
			continue
		}
		for j := i; j < len(lines); j++ {
			if strings.HasPrefix(lines[j], to) {
				return lines[i : j+1]
			}
		}
	}
	t.Fatalf("the document has no sample from %q to %q", from, to)
	return nil
}

// rule cuts the message out of a Rule: what follows the marker, up to the end of the Rule's line.
func rule(t *testing.T, marker string) string {
	t.Helper()
	for _, line := range strings.Split(document(t), "\n") {
		if at := strings.Index(line, marker); strings.HasPrefix(line, "• ") && at >= 0 {
			return line[at:]
		}
	}
	t.Fatalf("the document has no Rule with %q", marker)
	return ""
}

// tells checks that lines appear one after the other, exactly, and that other lines stand only where the sample has "…". A line that ends
// in "…" fixes its beginning. Names in angle brackets and hashes stand for any text of their kind.
func (told told) tells(t *testing.T, sample []string) {
	t.Helper()
	rest := strings.Split(strings.TrimRight(told.lines, "\n"), "\n")
	gap := true
	for _, want := range sample {
		if strings.TrimSpace(want) == "" {
			continue
		}
		if want == "…" {
			gap = true
			continue
		}
		pattern := regexp.MustCompile("^" + lineForm(want) + "$")
		found := -1
		for i, line := range rest {
			if pattern.MatchString(line) {
				found = i
				break
			}
			if !gap {
				break
			}
		}
		if found < 0 {
			t.Fatalf("no line %q at this place; what was told:\n%s", want, told.lines)
		}
		rest, gap = rest[found+1:], false
	}
}

var (
	placeholder = regexp.MustCompile(`<[a-z ]+>`)
	hash        = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
)

func lineForm(want string) string {
	form := regexp.QuoteMeta(want)
	form = strings.ReplaceAll(form, "…", ".*")
	form = placeholder.ReplaceAllString(form, ".+")
	return hash.ReplaceAllString(form, "[0-9a-f]{12}")
}

// lastLine is the line that tells why a converge stopped.
func (told told) lastLine() string {
	lines := strings.Split(strings.TrimRight(told.lines, "\n"), "\n")
	return lines[len(lines)-1]
}
