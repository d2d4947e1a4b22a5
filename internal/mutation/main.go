// Mutation takes the fixes of the field cases out, one at a time, and says of each whether a test notices.
//
//	go run ./internal/mutation            every mutation of docs/field-cases.mutations
//	go run ./internal/mutation F06 F23    those of some cases
//
// It runs in the root of the module and changes no file of it: go test reads the mutated file through an overlay. A mutation is killed when a test
// that its entry names fails. It is broken, which is as bad as one that survives, when the test does not pass without it, when it does not compile, or
// when the text that it replaces is not in the file exactly once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const list = "docs/field-cases.mutations"

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, ".", flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// run tries the mutations of these cases, or all, and prints a line for each.
func run(ctx context.Context, root string, cases []string) error {
	text, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return err
	}
	all, err := parse(string(text))
	if err != nil {
		return err
	}
	tried, alive := 0, 0
	for _, m := range all {
		if len(cases) > 0 && !slices.Contains(cases, m.fieldCase) {
			continue
		}
		began := time.Now()
		verdict := "killed"
		if err := m.try(ctx, root); err != nil {
			verdict = err.Error()
			alive++
		}
		tried++
		fmt.Printf("%s %s %s (%s): %s\n", m.fieldCase, m.file, m.test, time.Since(began).Round(time.Second), verdict)
	}
	switch {
	case tried == 0:
		return fmt.Errorf("no mutation of %v", cases)
	case alive > 0:
		return fmt.Errorf("%d of %d mutations were not killed", alive, tried)
	}
	return nil
}

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

// try is nil when a test notices that the fix is gone, and passes with it.
func (m mutation) try(ctx context.Context, root string) error {
	text, err := m.mutated(root)
	if err != nil {
		return fmt.Errorf("broken: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is the system's to sweep
	file, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return err
	}
	source, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{file: source}})
	if err = errors.Join(err, os.WriteFile(source, []byte(text), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		return err
	}
	switch before, output, err := m.goTest(ctx, root); {
	case err != nil:
		return err
	case before.failed || !before.passed:
		return fmt.Errorf("broken: the test does not pass without it\n%s", output)
	}
	switch after, output, err := m.goTest(ctx, root, "-count=1", "-overlay="+overlay); {
	case err != nil:
		return err
	case after.failed:
		return nil
	case after.passed:
		return errors.New("SURVIVED")
	default:
		return fmt.Errorf("broken: no test ran\n%s", output)
	}
}

// A result says what became of the named test: neither is true when none ran, for instance because the package does not compile.
type result struct{ passed, failed bool }

func (m mutation) goTest(ctx context.Context, root string, flags ...string) (is result, output string, err error) {
	pkg, name, ok := strings.Cut(m.test, ".Test")
	if !ok {
		return is, "", fmt.Errorf("broken: %q is no test", m.test)
	}
	var levels []string
	for _, level := range strings.Split("Test"+name, "/") {
		levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
	}
	args := append([]string{"test", "-json", "-vet=off", "-timeout=5m", "-run=" + strings.Join(levels, "/")}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return is, "", errors.Join(err, ctx.Err())
	}
	var said strings.Builder
	for _, line := range strings.Split(string(out), "\n") {
		event := struct{ Action, Test, Output string }{}
		if json.Unmarshal([]byte(line), &event) != nil {
			event.Output = line + "\n"
		}
		said.WriteString(event.Output)
		// With a row, the test around it passes also when there is no such row.
		if strings.Count(event.Test, "/") == len(levels)-1 && event.Test != "" {
			is.passed = is.passed || event.Action == "pass"
			is.failed = is.failed || event.Action == "fail"
		}
	}
	return is, said.String(), nil
}
