package config

import (
	"errors"
	"fmt"
	"strings"

	"jr2.dev/jr2/internal/seed"
)

// ErrTimeout says that the folder's code did not end within LoadOptions.Timeout.
var ErrTimeout = errors.New("the Instance's code did not end in time")

// ErrMemory says that the folder's code asked for more than LoadOptions.MemoryLimit.
var ErrMemory = errors.New("the Instance's code asks for more memory than it may have")

// ErrUnsettled says that a module waits for something that cannot come: at load there are no timers, no files and no network.
var ErrUnsettled = errors.New("a module waits for something that does not come while it is loaded")

// A NotFoundError says that neither Dir nor a folder above it holds jr2.config.ts.
type NotFoundError struct{ Dir string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no %s in %s or in a folder above it — run this in an Instance folder, or name one", ConfigFile, fileName(e.Dir))
}

// A FieldError is one problem of a configuration. Its text has the form that the source document fixes:
// "<file> at <path>: <problem> — <hint>".
type FieldError struct {
	// File is the absolute path of jr2.config.ts; empty for an Instance given as a Go value.
	File string
	// Path is the field as one writes it: "git.credentials[0].match". Empty for the default export itself.
	Path    string
	Problem string
	// Hint is what the section wants, or what to do.
	Hint string
	// Rule is "R1" … "R13" for the rules of held secrets; empty for the shape of a field.
	Rule string
}

func (e *FieldError) Error() string {
	file, problem := fileName(e.File), oneLine(e.Problem)
	if file == "" {
		file = "the Instance"
	}
	if rest, ok := strings.CutPrefix(e.Path, "priorityClasses"); ok {
		return fmt.Sprintf(seed.PriorityClassesShape, file, rest, problem)
	}
	at := ""
	if e.Path != "" {
		at = " at " + e.Path
	}
	if e.Hint == "" {
		return fmt.Sprintf("%s%s: %s", file, at, problem)
	}
	return fmt.Sprintf("%s%s: %s — %s", file, at, problem, e.Hint)
}

// A ModuleError is a module that cannot be bundled or evaluated, or that an authoring function refuses.
type ModuleError struct {
	// File is the absolute path of the module at fault; empty when the place is not known.
	File string
	// Line and Column are 1-based and speak of the source file; zero when not known.
	Line, Column int
	// Workflow is the Workflow whose load failed; empty for jr2.config.ts.
	Workflow string
	// Rule is a stable name of the refusal: "W1" … "W17" for the authoring functions (docs of each in recorder/), "export" for a
	// Workflow without `machine`, "name" for a Workflow name that cannot be a label value, "model" for an Agent whose model was
	// given as undefined, "syntax" for what the bundler refuses and "throw" for anything that the module throws itself.
	Rule    string
	Problem string
	// Err is ErrTimeout, ErrMemory, ErrUnsettled or an *OutsideError when that is the cause.
	Err error
}

func (e *ModuleError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(fileName(e.File))
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	if e.Workflow != "" {
		fmt.Fprintf(&b, "workflow %q: ", e.Workflow)
	}
	b.WriteString(oneLine(e.Problem))
	return b.String()
}

func (e *ModuleError) Unwrap() error { return e.Err }

// An OutsideError is an import that leaves the Instance folder, directly or through a symbolic link.
type OutsideError struct {
	// Importer is the absolute path of the module that asks; empty when it is the folder itself.
	Importer string
	// Path is where the import leads, or what it says when it leads nowhere.
	Path string
}

func (e *OutsideError) Error() string {
	by := ""
	if e.Importer != "" {
		by = fileName(e.Importer) + " "
	}
	return fmt.Sprintf("%simports %s, which is outside the Instance folder — a module comes from the folder itself or from a node_modules that it resolves", by, redactText(fileName(e.Path)))
}

// A SizeError says that a Workspace's Size leaves too little for the Harness.
type SizeError struct {
	WorkspaceSize
	// Short is "memory" or "cpu": the first of the two that is too small.
	Short string
}

func (e *SizeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow %q", e.Workflow)
	if len(e.Path) > 0 {
		fmt.Fprintf(&b, " (%s)", quotedChain(e.Path))
	}
	share := "no cpu"
	size := fmt.Sprintf("cpu %s (%s)", FormatCPU(e.Size.CPU), e.CPUSource)
	slice, user := FormatCPU(e.Custodian.CPU), ""
	if e.User.CPU != nil {
		user = FormatCPU(*e.User.CPU)
	}
	if e.Short == "memory" {
		share = fmt.Sprintf("%s of memory, less than the floor of %s,", formatSigned(e.Harness.Memory), FormatMemory(HarnessFloor))
		size = fmt.Sprintf("memory %s (%s)", FormatMemory(e.Size.Memory), e.MemorySource)
		slice, user = FormatMemory(e.Custodian.Memory), ""
		if e.User.Memory != nil {
			user = FormatMemory(*e.User.Memory)
		}
	}
	fmt.Fprintf(&b, ": a Size of %s leaves %s for the Harness — the Custodian takes %s", size, share, slice)
	fix := "raise the limit"
	if user != "" {
		fmt.Fprintf(&b, " and the User Container %s", user)
		fix = "raise the limit or shrink the split"
	}
	fmt.Fprintf(&b, "; %s (ADR-0060)", fix)
	return b.String()
}
