package config

import (
	"context"
	"slices"
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
	// Outermost is the outermost folder of which anything is opened. The node_modules of the folders from the Instance's up to this one are
	// searched for packages, as Node would; their real places must lie below it too. Empty is the Instance folder itself. See FindWorkspace.
	Outermost string
	// Env is the environment that the folder's code sees as process.env, usually what MergeEnv gives. A name that is not here does
	// not exist for the code; the environment of the process is never shown to it.
	Env map[string]string
	// Timeout bounds bundling and evaluation together. Default DefaultTimeout. The deadline of ctx holds as well.
	Timeout time.Duration
	// MemoryLimit bounds, in bytes, what the folder's code may hold while it is evaluated. Default DefaultMemoryLimit.
	MemoryLimit int64
	// KitVersion is used when the folder pins no version of @jr2/orchestrator. Default DefaultKitVersion.
	KitVersion string
	// Isolate is the command line of a program that calls ServeIsolated; the folder's code is then bundled and evaluated in that
	// process instead of this one. Use it for folders of strangers: it contains what bounds inside of a process cannot (a source that
	// is nested so deeply that the parser's stack overflows, a built-in function that does not end), because the process is killed.
	Isolate []string
	// OutsideImages admits file: images and a harness.caBundle that lie outside the Instance folder. Off, they are refused: a
	// folder of somebody else could otherwise have the host's files built into an image.
	OutsideImages bool
}

func (o LoadOptions) withDefaults() LoadOptions {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MemoryLimit <= 0 {
		o.MemoryLimit = DefaultMemoryLimit
	}
	if o.KitVersion == "" {
		o.KitVersion = DefaultKitVersion
	}
	return o
}

// Load reads an Instance folder: its configuration, its Workflows, and the modules that the Orchestrator will evaluate.
//
// The folder's code is evaluated in this process, without access to files, network, timers or the environment. Its time and its
// memory are bounded (errors.Is ErrTimeout, ErrMemory). The memory bound watches the heap of the process, so a program that allocates
// much at the same time may see ErrMemory too early; LoadOptions.Isolate evaluates in a process of its own.
//
// What is wrong comes at once, one a line: *FieldErrors (the fields of the configuration, in the order of its sections), then *ModuleErrors (a module
// cannot be bundled or evaluated, or an authoring function refuses it; errors.Is tells ErrTimeout, ErrMemory and ErrUnsettled, errors.As an
// *OutsideError), one for each Workflow that is broken. errors.As finds the first of a kind. A *NotFoundError says that there is no such folder.
//
// The Instance as far as it could be read comes with the error: without the fields at fault, and with the Workflows that are sound. Its Name is empty
// when nobody can say it. There is none when jr2.config.ts cannot be evaluated. Open parts and Sizes below the floor are no errors of Load: see
// Instance.OpenParts and Sizes.
func Load(ctx context.Context, opts LoadOptions) (*Instance, error) {
	inst, err := loadFolder(ctx, opts)
	if inst != nil {
		for n, note := range inst.Notes {
			inst.Notes[n] = oneLine(note)
		}
	}
	return inst, asLine(err)
}

func loadFolder(ctx context.Context, opts LoadOptions) (*Instance, error) {
	opts = opts.withDefaults()
	root, err := FindRoot(opts.Dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Timeout, ErrTimeout)
	defer cancel()
	fence, err := newFence(root, opts.Outermost)
	if err != nil {
		return nil, err
	}
	defer fence.close()

	var found gathered
	if len(opts.Isolate) > 0 {
		found, err = gatherIsolated(ctx, root, opts)
	} else {
		found, err = gather(ctx, fence, opts)
	}
	if found.config == nil {
		return nil, err
	}
	inst, configErr := decodeConfig(found.configFile, found.config)
	if inst == nil {
		return nil, together(configErr, err)
	}
	inst.Root = root
	walkErr := decodeWorkflows(inst, found.workflows)
	return inst, together(inFieldOrder(slices.Concat(parts(configErr), complete(inst, found, fence, opts), parts(err), parts(walkErr), validate(inst)))...)
}

// complete fills in what the folder says beside its code, and refuses what lies outside of it.
func complete(inst *Instance, found gathered, fence *fence, opts LoadOptions) (errs []error) {
	inst.Modules = found.modules
	version, kitNotes := kitVersion(fence, opts.KitVersion)
	inst.KitVersion = version
	var err error
	if inst.DefaultImage, err = defaultImage(fence); err != nil {
		errs = append(errs, err)
	}
	inst.outside = opts.OutsideImages
	if !opts.OutsideImages {
		if err := checkBundleInside(inst, fence); err != nil {
			errs, inst.Harness.CABundle = append(errs, err), ""
		}
		errs = append(errs, checkInside(inst, fence)...)
	}
	inst.Notes = append(inst.Notes, found.notes...)
	inst.Notes = append(inst.Notes, kitNotes...)
	inst.Notes = append(inst.Notes, imageNotes(inst)...)
	inst.Notes = append(inst.Notes, repoNotes(inst)...)
	inst.Notes = append(inst.Notes, ignoredNotes(fence)...)
	return errs
}
