package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of what a process of its own may hand over, in bytes.
const (
	maxHandover = int64(128) << 20
	maxStderr   = 64 << 10
)

// What travels between Load and ServeIsolated, as JSON.
type (
	isolatedRequest struct {
		Root      string            `json:"root"`
		Outermost string            `json:"outermost,omitempty"`
		Env       map[string]string `json:"env"`
		Timeout   time.Duration     `json:"timeout"`
		Memory    int64             `json:"memory"`
	}
	isolatedAnswer struct {
		Config    json.RawMessage `json:"config,omitempty"`
		Workflows json.RawMessage `json:"workflows,omitempty"`
		Modules   []Module        `json:"modules,omitempty"`
		Notes     []string        `json:"notes,omitempty"`
		Failed    []isolatedError `json:"failed,omitempty"`
	}
	isolatedError struct {
		Module  *ModuleError  `json:"module,omitempty"` // without Err
		Cause   string        `json:"cause,omitempty"`  // the sentinel that Err is
		Outside *OutsideError `json:"outside,omitempty"`
		Text    string        `json:"text"`
	}
)

// ServeIsolated is the other side of LoadOptions.Isolate: it reads one request, evaluates the folder, and writes one answer. A
// program that evaluates folders of strangers calls it in a process that does nothing else:
//
//	if len(os.Args) == 2 && os.Args[1] == "evaluate" {
//		if err := config.ServeIsolated(context.Background(), os.Stdin, os.Stdout); err != nil { … }
//		return
//	}
//
// The process bounds its own memory where the system can do it. It needs no environment, no network and no right but to read the
// folder; whoever starts it may take all else away.
func ServeIsolated(ctx context.Context, in io.Reader, out io.Writer) error {
	var request isolatedRequest
	if err := json.NewDecoder(in).Decode(&request); err != nil {
		return fmt.Errorf("no request: %w", err)
	}
	limitProcess(request.Memory)
	ctx, cancel := context.WithTimeoutCause(ctx, request.Timeout, ErrTimeout)
	defer cancel()
	answer := isolatedAnswer{}
	fence, err := newFence(request.Root, request.Outermost)
	if err == nil {
		defer fence.close()
		var found gathered
		found, err = gather(ctx, fence, LoadOptions{Env: request.Env, Timeout: request.Timeout, MemoryLimit: request.Memory})
		answer = isolatedAnswer{Config: found.config, Workflows: found.workflows, Modules: found.modules, Notes: found.notes}
	}
	for _, one := range parts(err) {
		answer.Failed = append(answer.Failed, sendError(one))
	}
	return json.NewEncoder(out).Encode(answer)
}

// gatherIsolated asks a process of its own for what gather gives.
func gatherIsolated(ctx context.Context, root string, opts LoadOptions) (gathered, error) {
	found := gathered{configFile: filepath.Join(root, ConfigFile)}
	request, err := json.Marshal(isolatedRequest{root, opts.Outermost, opts.Env, opts.Timeout, opts.MemoryLimit})
	if err != nil {
		return found, err
	}
	// The process keeps the deadline itself and says what it was doing; it is killed when it does not.
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), opts.Timeout+2*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(timeoutOf(ctx), ErrTimeout) {
			cancel()
		}
	})()
	command := exec.CommandContext(kill, opts.Isolate[0], opts.Isolate[1:]...)
	command.Env = []string{"GOTRACEBACK=none"}
	command.Stdin = bytes.NewReader(request)
	output, complaints := &capped{most: maxHandover}, &capped{most: maxStderr}
	command.Stdout, command.Stderr = output, complaints
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return found, isolatedFailure(ctx, kill, found.configFile, err, complaints.String())
	}
	var answer isolatedAnswer
	if err := json.Unmarshal(output.Bytes(), &answer); err != nil {
		return found, fmt.Errorf("%s gave no answer: %w", opts.Isolate[0], err)
	}
	found.config, found.workflows, found.modules, found.notes = answer.Config, answer.Workflows, answer.Modules, answer.Notes
	var errs []error
	for _, failed := range answer.Failed {
		errs = append(errs, failed.receive())
	}
	return found, together(errs...)
}

// isolatedFailure names the bound that a process of its own died of.
func isolatedFailure(ctx, kill context.Context, file string, err error, complaints string) error {
	if ctx.Err() != nil && !errors.Is(timeoutOf(ctx), ErrTimeout) {
		return ctx.Err()
	}
	bound := func(cause error) error {
		return &ModuleError{File: file, Rule: "bound", Problem: cause.Error(), Err: cause}
	}
	switch {
	case kill.Err() != nil:
		return bound(ErrTimeout)
	case strings.Contains(complaints, "out of memory"), strings.Contains(complaints, "cannot allocate memory"), strings.Contains(complaints, "stack exceeds"),
		strings.Contains(complaints, "failed to allocate"): // the last is how a build with the race detector says it
		return bound(ErrMemory)
	}
	return fmt.Errorf("the process that evaluates %s ended: %w: %s", file, err, clip(strings.TrimSpace(complaints)))
}

func sendError(err error) isolatedError {
	out := isolatedError{Text: err.Error()}
	var module *ModuleError
	if errors.As(err, &module) {
		plain := *module
		plain.Err, out.Module = nil, &plain
	}
	errors.As(err, &out.Outside)
	for _, cause := range sentinels() {
		if errors.Is(err, cause) {
			out.Cause = cause.Error()
		}
	}
	return out
}

func sentinels() []error { return []error{ErrTimeout, ErrMemory, ErrUnsettled} }

func (e isolatedError) receive() error {
	var cause error
	for _, known := range sentinels() {
		if e.Cause == known.Error() {
			cause = known
		}
	}
	if e.Outside != nil {
		cause = e.Outside
	}
	switch {
	case e.Module != nil:
		e.Module.Err = cause
		return e.Module
	case cause != nil:
		return cause
	}
	return errors.New(e.Text)
}

// capped keeps the first bytes of what a process writes; more than that is an error for the writer.
type capped struct {
	bytes.Buffer
	most int64
}

func (c *capped) Write(p []byte) (int, error) {
	if int64(c.Len()+len(p)) > c.most {
		return 0, errors.New("too much output")
	}
	return c.Buffer.Write(p)
}
