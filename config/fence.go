package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Bounds of what a bundle may read, in bytes.
//
// maxOwnSource is for files outside of node_modules. It also bounds how deep such a source can nest: the parsers pay for each level
// with stack, about 5 KiB a byte of source at worst ("!!!…"), and a Go program ends when a stack would grow beyond 512 MiB. Packages
// may have larger files, and a stranger may send packages; against that LoadOptions.Isolate helps.
const (
	maxOwnSource   = int64(64) << 10
	maxSource      = int64(2) << 20
	maxAllSources  = int64(32) << 20
	maxPackageJSON = int64(1) << 20
)

// A fence opens files for the bundler and for nothing else. Open are: the Instance folder, and the node_modules folders that Node
// itself would search from it, up to the workspace that the folder belongs to (the nearest folder above with pnpm-workspace.yaml,
// or with a package.json that lists workspaces). A folder that is in no workspace has only its own. So a folder that somebody
// uploads cannot reach packages of the program that loads it.
//
// Files are opened through os.Root: a symbolic link that leads out of its folder is refused by the open itself, also when it
// changes between the check and the open. A link from node_modules to another folder of the workspace (a linked member) leads
// outside and is refused.
type fence struct {
	root   string
	places []place

	mu   sync.Mutex
	read int64
}

type place struct {
	dir  string // real path
	root *os.Root
}

func newFence(root string) (*fence, error) {
	f := &fence{root: root}
	dirs := []string{root}
	if top := workspaceTop(root); top != "" {
		for at := root; at != top; {
			at = filepath.Dir(at)
			if real, err := filepath.EvalSymlinks(filepath.Join(at, "node_modules")); err == nil {
				dirs = append(dirs, real)
			}
		}
	}
	for _, dir := range dirs {
		handle, err := os.OpenRoot(dir)
		if err != nil {
			f.close()
			return nil, err
		}
		f.places = append(f.places, place{dir, handle})
	}
	return f, nil
}

func (f *fence) close() {
	for _, p := range f.places {
		p.root.Close()
	}
}

// workspaceTop is the nearest folder above root that declares a workspace; empty when there is none.
func workspaceTop(root string) string {
	for at := filepath.Dir(root); ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "pnpm-workspace.yaml")); err == nil {
			return at
		}
		var pkg struct {
			Workspaces json.RawMessage `json:"workspaces"`
		}
		if text, err := os.ReadFile(filepath.Join(at, "package.json")); err == nil && json.Unmarshal(text, &pkg) == nil && len(pkg.Workspaces) > 0 {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// inside finds the open place that holds a file. The name must be a real path; os.Root checks again when it opens.
func (f *fence) inside(name string) (place, string, bool) {
	for _, p := range f.places {
		if rel, err := filepath.Rel(p.dir, name); err == nil && filepath.IsLocal(rel) {
			return p, rel, true
		}
	}
	return place{}, "", false
}

// source gives the text of a module that a bundle holds.
func (f *fence) source(name string) ([]byte, error) {
	if strings.Contains(name, "/node_modules/") {
		return f.open(name, maxSource)
	}
	return f.open(name, maxOwnSource)
}

// open gives the text of a module, within the bounds.
func (f *fence) open(name string, most int64) ([]byte, error) {
	p, rel, ok := f.inside(name)
	if !ok {
		return nil, &OutsideError{Path: name}
	}
	// O_NONBLOCK, so that a named pipe in the folder cannot hold the load up.
	file, err := p.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if strings.Contains(err.Error(), "escapes from parent") {
			return nil, &OutsideError{Path: name}
		}
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s is larger than %s", name, FormatMemory(most))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read += int64(len(text)); f.read > maxAllSources {
		return nil, fmt.Errorf("the modules are larger than %s together", FormatMemory(maxAllSources))
	}
	return text, nil
}

// restart lets a further bundle read the same files again.
func (f *fence) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = 0
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
