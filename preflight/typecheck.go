package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// TypecheckOptions say how the compiler is run. The zero value runs "node" from PATH.
type TypecheckOptions struct {
	// Node is the Node.js that runs the compiler: a path, or a name that is looked up in PATH. Default: "node".
	Node string
	// Started is called before the compiler runs, and not when nothing is checked or no compiler is found. Default: not called.
	Started func()
}

// TypecheckResult says what was checked.
type TypecheckResult struct {
	// Skipped is the reason why nothing was checked; empty when the compiler ran and found nothing.
	Skipped string
	// Compiler is the path of the compiler that ran; empty when none did.
	Compiler string
}

// A TypecheckError says that the Instance does not compile.
type TypecheckError struct {
	// Output is the compiler's lines, standard output before standard error; its end may be cut, and then the last line says so.
	Output []string
}

// Error is a refusal, and below it the compiler's lines, indented by two spaces.
func (e *TypecheckError) Error() string {
	const refusal = "refusing: the instance does not compile. Nothing was built and nothing was applied."
	return strings.Join(append([]string{refusal}, e.Output...), "\n  ")
}

// NoNodeError says that there is no Node.js to run the compiler.
type NoNodeError struct {
	Node string
	Err  error
}

func (e *NoNodeError) Error() string {
	return fmt.Sprintf("no Node.js to run the instance's compiler (%v) — install Node.js and put %s on PATH, then re-run", e.Err, e.Node)
}

func (e *NoNodeError) Unwrap() error { return e.Err }

// NoCompilerError says that the Instance has a tsconfig.json and no TypeScript that could check it.
type NoCompilerError struct {
	// Root is the Instance folder.
	Root string
	// Reason is what is wrong with the TypeScript that was found; empty when none was.
	Reason string
}

func (e *NoCompilerError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "no node_modules/typescript there or above"
	}
	return fmt.Sprintf("%s has a tsconfig.json and no compiler of its own (%s) — install the instance's dependencies (npm install; "+
		"typescript must be one of them), then re-run", e.Root, reason)
}

// stopDelay is how long a compiler that was told to stop may keep its output open.
const stopDelay = 5 * time.Second

// Typecheck checks an Instance folder (an absolute path) with the Instance's own TypeScript: tsc --noEmit, in that folder. A folder without
// a tsconfig.json is not checked, and the result says so.
//
// It runs what node_modules of the folder, or of a folder above it, brings, with the rights of this process: not for a folder
// whose author may not run programs here.
//
// The error is a *TypecheckError for code that does not compile, a *NoCompilerError, a *NoNodeError, the context's when it
// ended (the compiler and its children are gone then), or one that says why the compiler could not be run to its end.
func Typecheck(ctx context.Context, root string, options TypecheckOptions) (TypecheckResult, error) {
	_, err := os.Stat(filepath.Join(root, "tsconfig.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return TypecheckResult{Skipped: "the instance has no tsconfig.json"}, nil
	}
	if err != nil {
		return TypecheckResult{}, fmt.Errorf("typecheck: %w", err)
	}
	compiler, err := findCompiler(root)
	if err != nil {
		return TypecheckResult{}, err
	}
	name := options.Node
	if name == "" {
		name = "node"
	}
	node, err := exec.LookPath(name)
	if err != nil {
		return TypecheckResult{}, &NoNodeError{Node: name, Err: err}
	}
	if options.Started != nil {
		options.Started()
	}
	return TypecheckResult{Compiler: compiler}, compile(ctx, root, node, compiler)
}

func compile(ctx context.Context, root, node, compiler string) error {
	var stdout, stderr boundedOutput
	cmd := exec.CommandContext(ctx, node, compiler, "--noEmit", "--pretty", "false")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &stdout, &stderr
	cmd.WaitDelay = stopDelay
	ownGroup(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("typecheck: %w", context.Cause(ctx))
	}
	output := append(stdout.lines(), stderr.lines()...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.Exited():
		return &TypecheckError{Output: output}
	default: // it did not start, or something ended it: that says nothing about the Instance
		return fmt.Errorf("typecheck: run %s: %w%s", compiler, err, strings.Join(append([]string{""}, output...), "\n  "))
	}
}
