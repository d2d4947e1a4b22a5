package config

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

// A sandbox is what a script may see and use.
type sandbox struct {
	env    map[string]string
	root   string
	memory int64
}

// A thrown is what the script threw, before its place is known in the sources.
type thrown struct {
	rule, message string
	frames        []frame
	mark          int
}

type frame struct{ line, column int }

func (t *thrown) Error() string { return t.message }

const (
	maxStack  = 4000     // calls; built-in functions between them cost the host's stack
	maxResult = 16 << 20 // bytes of what a script hands over
	// Set around the bundle, so that top-level await works and the text runs as the module that it was.
	scriptHead = "(async () => { \"use strict\";\n"
	scriptTail = "\n})()"
)

// run evaluates a script and gives the text that it left in globalThis.jr2result. It returns when ctx ends, also when a built-in
// function of the evaluator does not: that one is left behind and ends when it is done.
func run(ctx context.Context, s script, box sandbox) (string, error) {
	vm := goja.New()
	vm.SetMaxCallStackSize(maxStack)
	vm.SetParserOptions(parser.WithDisableSourceMaps)

	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	stop := watchMemory(box.memory, func() { vm.Interrupt(ErrMemory) })
	defer stop()
	defer context.AfterFunc(ctx, func() { vm.Interrupt(ErrTimeout) })()
	go func() {
		text, err := runGuarded(vm, s, box)
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
	}
	select { // the interrupt usually arrives at once, and then names what the script was doing
	case o := <-done:
		return o.text, o.err
	case <-time.After(200 * time.Millisecond):
		return "", timeoutOf(ctx)
	}
}

func runGuarded(vm *goja.Runtime, s script, box sandbox) (text string, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *goja.InterruptedError: // while a property of what was thrown was read
			err = interruption(r)
		default:
			err = fmt.Errorf("the evaluator failed: %v\n%s", r, debug.Stack())
		}
	}()
	if err := prepare(vm, box); err != nil {
		return "", interruption(err)
	}
	program, err := goja.Parse("bundle", scriptHead+s.code+scriptTail, parser.WithDisableSourceMaps)
	if err != nil {
		return "", err
	}
	compiled, err := goja.CompileAST(program, false)
	if err != nil {
		return "", err
	}
	value, err := vm.RunProgram(compiled)
	if err != nil {
		return "", explain(vm, err)
	}
	promise, ok := value.Export().(*goja.Promise)
	if !ok {
		return "", errors.New("the script gave no promise")
	}
	switch promise.State() {
	case goja.PromiseStateRejected:
		return "", describe(vm, promise.Result())
	case goja.PromiseStatePending:
		return "", ErrUnsettled
	}
	if result := vm.Get("jr2result"); result != nil {
		text = result.String()
	}
	if len(text) > maxResult {
		return "", ErrMemory
	}
	return text, nil
}

// explain turns the evaluator's error into ours.
func explain(vm *goja.Runtime, err error) error {
	var exception *goja.Exception
	if errors.As(err, &exception) {
		return describe(vm, exception.Value())
	}
	return interruption(err)
}

func interruption(err error) error {
	var interrupted *goja.InterruptedError
	if errors.As(err, &interrupted) {
		if cause, ok := interrupted.Value().(error); ok {
			return cause
		}
	}
	return err
}

var stackPlace = regexp.MustCompile(`bundle:(\d+):(\d+)`)

// describe reads a thrown value. Its properties may be getters, so reading them is evaluation too, under the same interrupts.
func describe(vm *goja.Runtime, value goja.Value) error {
	out := &thrown{message: "threw nothing", mark: -1}
	var failed error
	read := func(what func()) {
		if err := vm.Try(what); err != nil && failed == nil {
			failed = err
		}
	}
	read(func() {
		if value == nil {
			return
		}
		object, ok := value.(*goja.Object)
		if !ok {
			out.message = "threw " + clip(value.String())
			return
		}
		if message := object.Get("message"); message != nil {
			out.message = message.String()
		} else {
			out.message = "threw " + clip(value.String())
		}
		if rule := object.Get("jr2Rule"); rule != nil {
			out.rule = rule.String()
		} else if name := object.Get("name"); name != nil {
			out.message = clip(name.String()) + ": " + out.message
		}
		if stack := object.Get("stack"); stack != nil {
			out.frames = framesOf(stack.String())
		}
	})
	if len(out.message) > 2000 {
		out.message = strings.ToValidUTF8(out.message[:2000], "") + "…"
	}
	read(func() {
		if mark := vm.Get("jr2mark"); mark != nil {
			out.mark = int(mark.ToInteger())
		}
	})
	if cause := interruption(failed); errors.Is(cause, ErrTimeout) || errors.Is(cause, ErrMemory) {
		return cause
	}
	return out
}

func framesOf(stack string) []frame {
	var frames []frame
	for _, m := range stackPlace.FindAllStringSubmatch(stack[:min(len(stack), 16<<10)], 50) {
		line, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		frames = append(frames, frame{line - 1, column}) // the head is one line
	}
	return frames
}

// prepare gives a runtime its guards and its globals.
func prepare(vm *goja.Runtime, box sandbox) error {
	host := vm.NewObject()
	for name, f := range map[string]any{
		"tooMuch":     func() { vm.Interrupt(ErrMemory) },
		"repoProblem": repoProblem,
		"parseURL":    parseURL,
		"fileURL":     FileURL,
		"shownURL":    shownURL,
	} {
		if err := host.Set(name, f); err != nil {
			return err
		}
	}
	limits := map[string]any{
		"items":   box.memory / 64, // a slot of an array costs 16 bytes and grows by doubling
		"bytes":   box.memory / 8,
		"chars":   box.memory / 16,
		"args":    1 << 16,
		"pattern": 1 << 16,
		"depth":   1000,
	}
	env := map[string]any{}
	for name, value := range box.env {
		env[name] = value
	}
	if err := call(vm, "guards.js", host, vm.ToValue(limits)); err != nil {
		return err
	}
	plain := vm.NewObject()
	for name, value := range env {
		if err := plain.Set(name, value); err != nil {
			return err
		}
	}
	return call(vm, "globals.js", host, plain, vm.ToValue(box.root))
}

func call(vm *goja.Runtime, name string, args ...goja.Value) error {
	value, err := vm.RunScript(name, recorded(name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f, ok := goja.AssertFunction(value)
	if !ok {
		return fmt.Errorf("%s gives no function", name)
	}
	if _, err := f(goja.Undefined(), args...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// timeoutOf tells our own deadline from the caller's cancellation.
func timeoutOf(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrTimeout) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrTimeout
	}
	return ctx.Err()
}
