package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A faults error is several errors at once. Its text has one line for each; errors.As finds the first of a kind.
type faults struct{ errs []error }

func (f *faults) Error() string { return strings.Join(f.Messages(), "\n") }

// Messages are the texts of the errors, in their order.
func (f *faults) Messages() []string {
	lines := make([]string, len(f.errs))
	for i, err := range f.errs {
		lines[i] = err.Error()
	}
	return lines
}

func (f *faults) Unwrap() []error { return f.errs }

// together makes one error of several, each of which may be such a one, without those that say what another said already: nil for none, the error
// itself for one.
func together(errs ...error) error {
	var kept []error
	said := map[string]bool{}
	for _, err := range errs {
		for _, one := range parts(err) {
			if !said[one.Error()] {
				said[one.Error()] = true
				kept = append(kept, one)
			}
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case 1:
		return kept[0]
	}
	return &faults{kept}
}

// parts are the errors that together put together; one that is alone is its only part.
func parts(err error) []error {
	if several, ok := err.(*faults); ok {
		return several.errs
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// problems collects what is wrong with the fields of an Instance.
type problems struct {
	inst *Instance
	errs []error
}

func (p *problems) add(hint, path, format string, args ...any) {
	p.rule("", hint, path, format, args...)
}

// rule is add for a rule that has a name. A field that could not even be read is left out: what a rule says of it is an echo.
func (p *problems) rule(rule, hint, path, format string, args ...any) {
	if slices.ContainsFunc(p.inst.unread, func(broken string) bool { return IsWithin(path, broken) }) {
		return
	}
	p.errs = append(p.errs, &FieldError{File: p.inst.File, Path: path, Problem: fmt.Sprintf(format, args...), Hint: hint, Rule: rule})
}

// IsWithin says whether a field, such as "secrets[0].hosts", is the one at path, or below it. Everything is below the whole, whose path is empty.
func IsWithin(field, path string) bool {
	rest, ok := strings.CutPrefix(field, path)
	return ok && (path == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// fieldOrder has the sections in the order of their description, those with parts of their own by these.
func fieldOrder() []string {
	return []string{
		"name", "kitVersion", "git", "registry", "kitRegistry", "platforms", "sandbox.nodeSelector", "sandbox.tolerations", "sandbox.resources", "sandbox",
		"priorityClasses", "secrets", "harness.provider", "harness.catalog", "harness.env", "harness.envFrom", "harness.caBundle", "harness", "operator",
	}
}

// inFieldOrder sorts the errors of fields by section and by index; they come before all others, which keep their order.
func inFieldOrder(errs []error) []error {
	sorted := slices.Clone(errs)
	slices.SortStableFunc(sorted, func(a, b error) int {
		sectionA, indexA := placeOf(a)
		sectionB, indexB := placeOf(b)
		if sectionA != sectionB {
			return sectionA - sectionB
		}
		return indexA - indexB
	})
	return sorted
}

// placeOf gives the rank of a field's section and the first index in its path, -1 for none.
func placeOf(err error) (section, index int) {
	var field *FieldError
	order := fieldOrder()
	if !errors.As(err, &field) {
		return len(order), -1
	}
	if field.Path == "" {
		return -1, -1
	}
	section = slices.IndexFunc(order, func(name string) bool { return IsWithin(field.Path, name) })
	if section < 0 {
		section = len(order) - 1
	}
	_, rest, _ := strings.Cut(field.Path, "[")
	digits, _, _ := strings.Cut(rest, "]")
	if n, err := strconv.Atoi(digits); err == nil {
		return section, n
	}
	return section, -1
}
