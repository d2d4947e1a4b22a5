package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dop251/goja"
	"github.com/go-sourcemap/sourcemap"
)

// gathered is what the code of a folder says, before it is checked.
type gathered struct {
	configFile string
	config     json.RawMessage
	workflows  json.RawMessage
	modules    []Module
	notes      []string
}

// gather bundles and evaluates the configuration, then the Workflows. What it could gather comes with the errors.
func gather(ctx context.Context, fence *fence, opts LoadOptions) (gathered, error) {
	found := gathered{configFile: filepath.Join(fence.root, ConfigFile)}
	box := sandbox{env: opts.Env, root: fence.root, memory: opts.MemoryLimit}

	text, _, configErr := evaluateEntry(ctx, fence, box, configEntry(found.configFile), nil)
	if configErr == nil {
		found.config = json.RawMessage(text)
	}
	names, err := discover(fence)
	if err != nil || ctx.Err() != nil {
		return found, together(configErr, err)
	}
	named, err := wellNamed(fence.root, names)
	read, readErr := readWorkflows(ctx, fence, box, named)
	err = together(configErr, err, readErr)
	if configErr != nil {
		return found, err
	}
	found.workflows, found.notes = read.text, read.notes()
	modules, modulesErr := bundleModules(ctx, fence, read.names)
	found.modules = modules
	return found, together(err, modulesErr)
}

// wellNamed leaves out the Workflows whose names can't be used.
func wellNamed(root string, names []string) ([]string, error) {
	var named []string
	var errs []error
	for _, name := range names {
		err := checkWorkflowName(workflowFile(root, name), name)
		if err == nil {
			named = append(named, name)
		}
		errs = append(errs, err)
	}
	return named, together(errs...)
}

func workflowFile(root, name string) string { return filepath.Join(root, workflowsDir, name+".ts") }

func configEntry(file string) string {
	return fmt.Sprintf("import { plain } from \"jr2:plain\";\nimport * as module from %q;\nglobalThis.jr2result = plain({ value: module[\"default\"] });\n", file)
}

// workflowsEntry imports the Workflows in name order, each behind a mark, and registers what they export.
func workflowsEntry(root string, names []string) string {
	var imports, calls strings.Builder
	for i, name := range names {
		fmt.Fprintf(&imports, "import \"jr2:mark/%d\";\nimport * as w%d from %q;\n", i, i, workflowFile(root, name))
		fmt.Fprintf(&calls, "mark(%d); all.push(register(%q, w%d));\n", i, name, i)
	}
	return "import { mark } from \"jr2:state\";\nimport { register } from \"jr2:walk\";\n" + imports.String() +
		"const all = [];\n" + calls.String() + "globalThis.jr2result = JSON.stringify(all);\n"
}

func evaluateEntry(ctx context.Context, fence *fence, box sandbox, entry string, names []string) (string, *bundler, error) {
	fence.restart()
	b := &bundler{fence: fence, entry: entry}
	s, err := b.bundle(ctx)
	if err != nil {
		return "", b, asModuleError(fence.root, err, names)
	}
	text, err := run(ctx, s, box)
	if err != nil {
		return "", b, placeError(fence.root, s, err, names)
	}
	return text, b, nil
}

// asModuleError wraps a bound that was reached outside of any module.
func asModuleError(root string, err error, names []string) error {
	var module *ModuleError
	if errors.As(err, &module) || errors.Is(err, context.Canceled) {
		return err
	}
	out := &ModuleError{Rule: "bound", Problem: err.Error(), Err: err}
	switch len(names) {
	case 0:
		out.File = filepath.Join(root, ConfigFile)
	case 1:
		out.File, out.Workflow = workflowFile(root, names[0]), names[0]
	}
	return out
}

// placeError finds the source of what a script threw.
func placeError(root string, s script, err error, names []string) error {
	var t *thrown
	if !errors.As(err, &t) {
		var syntax *goja.CompilerSyntaxError
		if errors.As(err, &syntax) {
			return asModuleError(root, fmt.Errorf("the evaluator does not know this syntax: %w", err), names)
		}
		return asModuleError(root, err, names)
	}
	out := &ModuleError{Rule: t.rule, Problem: t.message}
	if t.rule == "" {
		out.Rule = "throw"
	}
	if t.mark >= 0 && t.mark < len(names) {
		out.Workflow = names[t.mark]
		out.File = workflowFile(root, out.Workflow)
	} else if len(names) == 0 {
		out.File = filepath.Join(root, ConfigFile)
	}
	consumer, mapErr := sourcemap.Parse("", s.sourceMap)
	if mapErr != nil || t.rule == "export" {
		return out
	}
	for _, at := range t.frames {
		file, _, line, column, ok := consumer.Source(at.line, at.column-1)
		if !ok || strings.Contains(file, "jr2:") {
			continue
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(root, file)
		}
		out.File, out.Line, out.Column = file, line, column+1
		break
	}
	return out
}
