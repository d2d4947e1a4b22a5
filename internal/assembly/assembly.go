package assembly

import (
	"encoding/json"

	"jr2.dev/jr2/config"
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

// Build makes the Assembly of an Instance. contexts gives the content digests of its image contexts, keyed as a Workspace names
// them (a file: URL) and by Instance.DefaultImage; nil means none.
func Build(inst *config.Instance, contexts map[string]string) (*Assembly, error) { panic("unfinished") }

// Open reads an archive and checks that it is an Assembly.
func Open(archive []byte) (*Assembly, error) { panic("unfinished") }
