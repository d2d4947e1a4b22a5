package config

import (
	"context"
	"time"
)

// ConfigFile is the name of the file that makes a folder an Instance.
const ConfigFile = "jr2.config.ts"

// DefaultKitVersion is the Kit version of an Instance that pins none: the one that this SDK was written for.
const DefaultKitVersion = "0.3.0"

// Defaults of LoadOptions.
const (
	DefaultTimeout     = 10 * time.Second
	DefaultMemoryLimit = int64(256) << 20
)

// LoadOptions says which folder to load and what its code may do. The zero value loads the Instance around the working directory,
// with an empty environment.
type LoadOptions struct {
	// Dir is a folder in the Instance; Load walks up to the one that holds jr2.config.ts. Empty means the working directory.
	Dir string
	// Env is the environment that the folder's code sees as process.env, usually what MergeEnv gives. A name that is not here does
	// not exist for the code; the environment of the process is never shown to it.
	Env map[string]string
	// Timeout bounds bundling and evaluation together. Default DefaultTimeout. The deadline of ctx holds as well.
	Timeout time.Duration
	// MemoryLimit bounds, in bytes, what the folder's code may hold while it is evaluated. Default DefaultMemoryLimit.
	MemoryLimit int64
	// KitVersion is used when the folder pins no version of @jr2/orchestrator. Default DefaultKitVersion.
	KitVersion string
}

// Load reads an Instance folder: its configuration, its Workflows, and the modules that the Orchestrator will evaluate.
//
// Errors: *NotFoundError (no such folder), *ModuleError (a module cannot be bundled or evaluated, or an authoring function refuses
// it; errors.Is tells ErrTimeout, ErrMemory and ErrUnsettled, errors.As an *OutsideError), *FieldError (the configuration's first
// problem). Open parts and Sizes below the floor are no errors of Load: see Instance.OpenParts and Sizes.
func Load(ctx context.Context, opts LoadOptions) (*Instance, error) {
	panic("written next")
}

// Validate checks an Instance that a Go program filled in, with the same rules and the same errors as Load.
func Validate(inst *Instance) error {
	panic("written next")
}

// CheckHeldSecrets applies the rules of held secrets that need nothing but the configuration and, for presence of values, the
// environment it was loaded with: names, values, hosts, headers, paths. A converge calls it before it writes anything; Load does
// not, because the Orchestrator loads the same file where no value exists.
func CheckHeldSecrets(inst *Instance) error {
	panic("written next")
}
