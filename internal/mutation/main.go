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
	all = slices.DeleteFunc(all, func(m mutation) bool { return len(cases) > 0 && !slices.Contains(cases, m.fieldCase) })
	if len(all) == 0 {
		return fmt.Errorf("no mutation of %v", cases)
	}
	passes, err := unmutated(ctx, root, all)
	if err != nil {
		return err
	}
	alive := 0
	for _, m := range all {
		began := time.Now()
		verdict := "killed"
		if err := m.try(ctx, root, passes); err != nil {
			verdict = err.Error()
			alive++
		}
		fmt.Printf("%s %s %s (%s): %s\n", m.fieldCase, m.file, m.test, time.Since(began).Round(time.Second), verdict)
	}
	if alive > 0 {
		return fmt.Errorf("%d of %d mutations were not killed", alive, len(all))
	}
	return nil
}

// unmutated runs the tests that the mutations name as they are, each package once, and returns those that pass.
func unmutated(ctx context.Context, root string, all []mutation) (passes map[string]bool, err error) {
	patterns := map[string][]string{}
	for _, m := range all {
		pkg, levels := m.levels()
		if !slices.Contains(patterns[pkg], levels[0]) {
			patterns[pkg] = append(patterns[pkg], levels[0])
		}
	}
	passes = map[string]bool{}
	for pkg, tests := range patterns {
		ran, _, err := goTest(ctx, root, pkg, "-run="+strings.Join(tests, "|"))
		if err != nil {
			return nil, err
		}
		for test, passed := range ran {
			passes[pkg+"."+test] = passed
		}
	}
	return passes, nil
}

// try is nil when the test, which passes as it is, notices that the fix is gone.
func (m mutation) try(ctx context.Context, root string, passes map[string]bool) error {
	text, err := m.mutated(root)
	if err != nil {
		return fmt.Errorf("broken: %w", err)
	}
	if !passes[m.name()] {
		return errors.New("broken: without it the test does not pass, or there is none")
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
	pkg, patterns := m.levels()
	ran, output, err := goTest(ctx, root, pkg, "-count=1", "-overlay="+overlay, "-run="+strings.Join(patterns, "/"))
	if err != nil {
		return err
	}
	switch passed, did := ran[strings.TrimPrefix(m.name(), pkg+".")]; {
	case !did:
		return fmt.Errorf("broken: the test did not run\n%s", output)
	case passed:
		return errors.New("SURVIVED")
	}
	return nil
}

// goTest says of each test that ran whether it passed; of none when the package does not compile.
func goTest(ctx context.Context, root, pkg string, flags ...string) (passed map[string]bool, output string, err error) {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-json", "-vet=off", "-timeout=5m"}, flags...), "./"+pkg)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return nil, "", errors.Join(err, ctx.Err())
	}
	passed = map[string]bool{}
	var said strings.Builder
	for _, line := range strings.Split(string(out), "\n") {
		event := struct{ Action, Test, Output string }{}
		if json.Unmarshal([]byte(line), &event) != nil {
			event.Output = line + "\n"
		}
		said.WriteString(event.Output)
		if event.Test != "" && (event.Action == "pass" || event.Action == "fail") {
			passed[event.Test] = event.Action == "pass"
		}
	}
	return passed, said.String(), nil
}
