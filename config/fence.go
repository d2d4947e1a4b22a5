package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"jr2.dev/jr2/internal/folder"
)

const (
	modulesDir   = "node_modules"
	manifestName = "package.json"
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
// itself would search from it, up to the outermost folder that the caller names. Nothing that lies in a folder makes more of it open.
// A file is opened by its real path, so a link leads to what is open or nowhere; a link to another folder of a workspace (a linked
// member) leads outside.
type fence struct {
	root   string
	places []*folder.Folder // the Instance folder first

	mu   sync.Mutex
	read int64
}

// newFence opens the Instance folder, a real path, and the node_modules above it up to outermost; none when that is empty.
func newFence(root, outermost string) (*fence, error) {
	own, err := folder.Open(root)
	if err != nil {
		return nil, err
	}
	f := &fence{root: own.Dir(), places: []*folder.Folder{own}}
	if outermost == "" {
		return f, nil
	}
	top, err := folder.Open(outermost)
	if err != nil {
		f.close()
		return nil, fmt.Errorf("LoadOptions.Outermost: %w", err)
	}
	defer top.Close()
	at, ok := top.Rel(f.root)
	if !ok {
		f.close()
		return nil, fmt.Errorf("LoadOptions.Outermost: the Instance folder %s is not below %s", f.root, outermost)
	}
	for at != "." {
		at = filepath.Dir(at)
		if place, err := top.Sub(filepath.Join(at, modulesDir)); err == nil { // none there, or one that leads elsewhere
			f.places = append(f.places, place)
		}
	}
	return f, nil
}

func (f *fence) close() {
	for _, p := range f.places {
		p.Close()
	}
}

// FindWorkspace finds the folder of the workspace that the Instance around dir belongs to: the nearest folder above it with
// pnpm-workspace.yaml, or with a package.json that lists workspaces; the Instance folder itself where there is none. It is what
// LoadOptions.Outermost wants for a folder of the caller's own. Of somebody else's folder it tells nothing: the author may have written
// these files too.
func FindWorkspace(dir string) (string, error) {
	root, err := FindRoot(dir)
	if err != nil {
		return "", err
	}
	for at := filepath.Dir(root); ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "pnpm-workspace.yaml")); err == nil {
			return at, nil
		}
		var pkg struct {
			Workspaces json.RawMessage `json:"workspaces"`
		}
		text, err := folder.ReadFile(filepath.Join(at, manifestName), maxPackageJSON)
		if err == nil && json.Unmarshal(text, &pkg) == nil && len(pkg.Workspaces) > 0 {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return root, nil
		}
	}
}

// inside finds the open place that holds a file, and the file's name there. It looks at the text alone.
func (f *fence) inside(name string) (*folder.Folder, string, bool) {
	for _, p := range f.places {
		if rel, ok := p.Rel(name); ok {
			return p, rel, true
		}
	}
	return nil, "", false
}

// real gives the path without links of a file in an open place. The error is an *OutsideError where a link leads out of all of them.
func (f *fence) real(name string) (string, error) {
	for range f.places {
		p, rel, ok := f.inside(name)
		if !ok {
			break
		}
		real, err := p.Real(rel)
		var left *folder.OutsideError
		switch {
		case err == nil:
			return filepath.Join(p.Dir(), real), nil
		case !errors.As(err, &left):
			return "", err
		}
		name = left.Path // from a package to where the package manager keeps it, perhaps
	}
	return "", &OutsideError{Path: name}
}

// stat looks at a file of an open place, and gives its real path.
func (f *fence) stat(name string) (string, fs.FileInfo, error) {
	real, err := f.real(name)
	if err != nil {
		return "", nil, err
	}
	p, rel, ok := f.inside(real)
	if !ok {
		return "", nil, &OutsideError{Path: real}
	}
	info, err := p.Lstat(rel)
	return real, info, err
}

// source gives the text of a module that a bundle holds.
func (f *fence) source(name string) ([]byte, error) {
	if strings.Contains(name, "/node_modules/") {
		return f.open(name, maxSource)
	}
	return f.open(name, maxOwnSource)
}

// open gives the text of a file, within the bounds.
func (f *fence) open(name string, most int64) ([]byte, error) {
	real, err := f.real(name)
	if err != nil {
		return nil, err
	}
	p, rel, ok := f.inside(real)
	if !ok {
		return nil, &OutsideError{Path: name}
	}
	text, err := p.ReadFile(rel, most)
	switch {
	case errors.Is(err, folder.ErrOutside):
		return nil, &OutsideError{Path: name}
	case errors.Is(err, folder.ErrNotRegular):
		return nil, fmt.Errorf("%s is no regular file", name)
	case errors.Is(err, folder.ErrTooLarge):
		return nil, fmt.Errorf("%s is larger than %s", name, FormatMemory(most))
	case err != nil:
		return nil, err
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
