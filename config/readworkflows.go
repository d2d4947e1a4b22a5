package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// workflowsRead is what the modules of the sound Workflows say.
type workflowsRead struct {
	// names are the Workflows that were read, sorted; text is the list of their records, in the same order.
	names []string
	text  json.RawMessage
	// stubs are packages that stand-ins replaced, readsEnv modules that speak of process.env.
	stubs, readsEnv map[string]bool
}

// readWorkflows evaluates the Workflows in one go, as they share modules. Where that fails it leaves out the one at fault and tries the rest; where
// nobody can say which one it is, each is tried alone. So each that is broken has an error of its own, and the sound ones are read.
func readWorkflows(ctx context.Context, fence *fence, box sandbox, names []string) (workflowsRead, error) {
	read := workflowsRead{text: json.RawMessage("[]"), stubs: map[string]bool{}, readsEnv: map[string]bool{}}
	var errs []error
	for rest := names; len(rest) > 0; {
		err := read.evaluate(ctx, fence, box, rest)
		if err == nil {
			break
		}
		at := blamed(err, rest)
		switch {
		case ctx.Err() != nil, len(rest) == 1:
			return read, together(append(errs, err)...)
		case at < 0:
			return read, together(append(errs, read.evaluateEach(ctx, fence, box, rest))...)
		}
		errs = append(errs, err)
		rest = slices.Delete(slices.Clone(rest), at, at+1)
	}
	return read, together(inNameOrder(errs)...)
}

// blamed is the place of the Workflow that an error names; -1 when it names none of them.
func blamed(err error, names []string) int {
	var module *ModuleError
	if !errors.As(err, &module) {
		return -1
	}
	return slices.Index(names, module.Workflow)
}

// inNameOrder sorts by the name of the Workflow: which one stopped an evaluation first says nothing.
func inNameOrder(errs []error) []error {
	name := func(err error) string {
		var module *ModuleError
		errors.As(err, &module)
		return module.Workflow
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(name(a), name(b)) })
	return errs
}

// evaluateEach reads each Workflow in an evaluation of its own.
func (r *workflowsRead) evaluateEach(ctx context.Context, fence *fence, box sandbox, names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, r.evaluate(ctx, fence, box, []string{name}))
		if ctx.Err() != nil {
			break
		}
	}
	return together(errs...)
}

// evaluate adds what some Workflows say.
func (r *workflowsRead) evaluate(ctx context.Context, fence *fence, box sandbox, names []string) error {
	text, b, err := evaluateEntry(ctx, fence, box, workflowsEntry(fence.root, names), names)
	if err != nil {
		return err
	}
	var before, more []json.RawMessage
	if err := errors.Join(json.Unmarshal(r.text, &before), json.Unmarshal([]byte(text), &more)); err != nil {
		return fmt.Errorf("%s: the walk gave no records: %w", fence.root, err)
	}
	if r.text, err = json.Marshal(append(before, more...)); err != nil {
		return err
	}
	r.names = append(r.names, names...)
	maps.Copy(r.stubs, b.stubs)
	maps.Copy(r.readsEnv, b.readsEnv)
	return nil
}

// notes says what stood in for a package, and which modules read the environment.
func (r *workflowsRead) notes() []string {
	var notes []string
	if len(r.stubs) > 0 {
		notes = append(notes, fmt.Sprintf("%s: not installed in the Instance folder, so stand-ins were used while its Workflows were read — "+
			"what only the real package finds is found by the Orchestrator", strings.Join(slices.Sorted(maps.Keys(r.stubs)), ", ")))
	}
	for _, file := range slices.Sorted(maps.Keys(r.readsEnv)) {
		notes = append(notes, fmt.Sprintf("%s reads process.env — the Orchestrator evaluates it again in the cluster, where neither the shell nor .env exists, "+
			"so what it says may differ there", file))
	}
	return notes
}
