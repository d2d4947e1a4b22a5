package preflight

import (
	"cmp"
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

// TypecheckOptions say whether and how the compiler is run. The zero value runs nothing.
type TypecheckOptions struct {
	// Trusted says that code which the folder brings may run here, with the rights of this process. Without it nothing is checked,
	// and the result says so.
	Trusted bool
	// Limit bounds how long the compiler may run. Default: DefaultTypecheckLimit.
	Limit time.Duration
	// Node is the Node.js that runs the compiler: a path, or a name that is looked up in PATH. Default: "node".
	Node string
	// Started is called before the compiler runs, and not when nothing is checked or no compiler is found. Default: not called.
	Started func()
}

// DefaultTypecheckLimit is how long a compiler may run unless TypecheckOptions.Limit says otherwise.
const DefaultTypecheckLimit = 5 * time.Minute

// TypecheckResult says what was checked.
type TypecheckResult struct {
	// Skipped is the reason why nothing was checked; empty when the compiler ran and found nothing.
	Skipped string
	// Untrusted says that the reason is that the folder may run nothing here: its types are not known to be right.
	Untrusted bool
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

// An UnendingCompilerError says that the compiler was stopped because it ran for too long.
type UnendingCompilerError struct {
	// Compiler is the path of the compiler.
	Compiler string
	Limit    time.Duration
}

func (e *UnendingCompilerError) Error() string {
	return fmt.Sprintf("typecheck: %s did not end within %s and was stopped. Nothing was built and nothing was applied — run it by hand, "+
		"in the instance folder: npx tsc --noEmit", e.Compiler, e.Limit)
}

// Typecheck checks an Instance folder (an absolute path) with the Instance's own TypeScript: tsc --noEmit, in that folder. A folder without
// a tsconfig.json is not checked, and neither is one that is not trusted; the result says so.
//
// It runs what node_modules of the folder, or of a folder above it, brings: only for a folder whose author may run programs here. The
// compiler gets PATH and nothing else of the environment.
//
// The error is a *TypecheckError for code that does not compile, a *NoCompilerError, a *NoNodeError, an *UnendingCompilerError, the context's
// when it ended (the compiler and the processes that it started in its group are gone then), or one that says why the compiler could not be run
// to its end.
func Typecheck(ctx context.Context, root string, options TypecheckOptions) (TypecheckResult, error) {
	const config = "tsconfig.json"
	err := isFile(root, config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return TypecheckResult{Skipped: "the instance has no tsconfig.json"}, nil
	case err != nil:
		return TypecheckResult{}, fmt.Errorf("typecheck: %s: %w", filepath.Join(root, config), err)
	case !options.Trusted:
		return TypecheckResult{Skipped: "nothing that an untrusted folder brings is run here", Untrusted: true}, nil
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
	unending := &UnendingCompilerError{Compiler: compiler, Limit: cmp.Or(options.Limit, DefaultTypecheckLimit)}
	ctx, cancel := context.WithTimeoutCause(ctx, unending.Limit, unending)
	defer cancel()
	return TypecheckResult{Compiler: compiler}, compile(ctx, root, node, compiler)
}

func compile(ctx context.Context, root, node, compiler string) error {
	var stdout, stderr boundedOutput
	cmd := exec.CommandContext(ctx, node, compiler, "--noEmit", "--pretty", "false")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &stdout, &stderr
	// Tokens, the kubeconfig and NODE_OPTIONS of this process are none of the compiler's business.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.WaitDelay = stopDelay
	ownGroup(cmd)
	err := cmd.Run()
	var unending *UnendingCompilerError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &unending):
		return unending
	case cause != nil:
		return fmt.Errorf("typecheck: %w", cause)
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
