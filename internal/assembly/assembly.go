package assembly

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jr2.dev/jr2/config"
)

// Format is the version of the format that this package writes and reads.
const Format = 1

// MaxSize bounds an archive, in bytes: more than that is no code, and the store of a cluster is small.
const MaxSize = 32 << 20

const (
	manifestPath = "manifest.json"
	configModule = "jr2.config"
	modulesDir   = "workflows/"
	moduleSuffix = ".mjs"
)

// An Assembly is an Instance's deployable content, as one value.
type Assembly struct {
	// Hash is 12 hex digits that name the content.
	Hash     string
	Manifest Manifest
	// Modules are the modules in path order.
	Modules []Module
	// Archive is the tar that is stored. Equal content gives equal bytes.
	Archive []byte
}

// Module is one ES module of an Assembly.
type Module struct {
	// Path is relative and slash-separated: jr2.config.mjs, or workflows/<name>.mjs.
	Path   string
	Source []byte
}

// Manifest is manifest.json of the archive.
type Manifest struct {
	// Format is the version of the format: 1.
	Format int `json:"format"`
	// Kit is the Kit version that the modules are written for.
	Kit      string `json:"kit"`
	Instance string `json:"instance"`
	// Workflows are the names of the registered Workflows, sorted.
	Workflows []string `json:"workflows"`
	// Contexts gives the content digest of each image context, by its path from the Instance folder, such as images/default. The
	// Orchestrator finds an image's reference by this digest, so the contexts themselves do not travel.
	Contexts map[string]string `json:"contexts,omitempty"`
	// Config is the Instance as JSON, without secrets and paths of the machine; only for an Instance without modules.
	Config json.RawMessage `json:"config,omitempty"`
}

// ErrInvalid is in the chain of every error that says that bytes are not an Assembly, or not the one they claim to be.
var ErrInvalid = errors.New("not a valid Assembly")

// ErrTooLarge says that an archive exceeds MaxSize.
var ErrTooLarge = fmt.Errorf("the Assembly is larger than %d MiB", MaxSize>>20)

// Build makes the Assembly of an Instance. contexts gives the content digests of its image contexts, keyed by its file: URL as
// config.ImageContext has it, or by its absolute path; nil means none. Equal Instances give equal bytes, wherever their folder lies and whatever their secrets
// are. Errors: ErrTooLarge; a module whose name is no file name; two modules of one name.
func Build(inst *config.Instance, contexts map[string]string) (*Assembly, error) {
	place := placer{root: inst.Root}
	a := &Assembly{Manifest: Manifest{
		Format: Format, Kit: inst.KitVersion, Instance: inst.Name,
		Workflows: inst.WorkflowNames(), Contexts: place.contexts(contexts),
	}}
	for _, module := range inst.Modules {
		path, err := modulePath(module.Name)
		if err != nil {
			return nil, err
		}
		a.Modules = append(a.Modules, Module{Path: path, Source: module.Source})
	}
	if len(inst.Modules) == 0 {
		text, err := json.Marshal(place.portable(inst))
		if err != nil {
			return nil, fmt.Errorf("the Instance as JSON: %w", err)
		}
		a.Manifest.Config = text
	}
	slices.SortFunc(a.Modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	manifest, err := json.MarshalIndent(a.Manifest, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	entries := a.entries(manifest)
	if a.Archive, err = pack(entries); err != nil {
		return nil, err
	}
	a.Hash = hash(entries)
	return a, nil
}

// modulePath gives a module's place in the archive.
func modulePath(name string) (string, error) {
	if name == configModule {
		return configModule + moduleSuffix, nil
	}
	path := modulesDir + name + moduleSuffix
	if name == "" || strings.ContainsAny(name, "/\\\x00") || !validPath(path) {
		return "", fmt.Errorf("the module %q has no file name", name)
	}
	return path, nil
}

// entries are the files of the archive in path order.
func (a *Assembly) entries(manifest []byte) []entry {
	entries := []entry{{manifestPath, manifest}}
	for _, module := range a.Modules {
		entries = append(entries, entry{module.Path, module.Source})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries
}

// Open reads an archive and checks that it is an Assembly: its paths, its order, its manifest. It does not know which hash was
// wanted; compare Hash. Errors have ErrInvalid or ErrTooLarge in their chain.
func Open(archive []byte) (*Assembly, error) {
	if len(archive) > MaxSize {
		return nil, ErrTooLarge
	}
	entries, err := unpack(archive)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	a := &Assembly{Archive: archive, Hash: hash(entries)}
	found := false
	for _, e := range entries {
		if e.path == manifestPath {
			found = true
			if err := json.Unmarshal(e.data, &a.Manifest); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, manifestPath, err)
			}
			continue
		}
		a.Modules = append(a.Modules, Module{Path: e.path, Source: e.data})
	}
	switch {
	case !found:
		return nil, fmt.Errorf("%w: it has no %s", ErrInvalid, manifestPath)
	case a.Manifest.Format != Format:
		return nil, fmt.Errorf("%w: its format is %d, and %d is what can be read", ErrInvalid, a.Manifest.Format, Format)
	}
	return a, nil
}
