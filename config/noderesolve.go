package config

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// A nodeResolver finds the file of an import as the bundler's own resolver would, which follows Node
// (https://nodejs.org/api/esm.html#resolution-algorithm-specification). The bundler's own opens what it likes, wherever a folder leads it;
// this one asks the fence.
type nodeResolver struct {
	fence *fence
	// conditions of exports and imports that hold, beside "default" and the kind of the import.
	conditions []string

	mu        sync.Mutex
	manifests map[string]*manifest
}

// A resolved file. Its suffix is a query or fragment of the import that is no part of the file's name.
type resolved struct {
	path, suffix string
	sideEffects  bool
}

var (
	// errNotFound says that an import leads to no file.
	errNotFound = errors.New("not found")
	// errClosed says that a package is there and does not export what is asked for: no other place is looked at.
	errClosed = errors.New("not exported")
)

// Extensions that an import may leave out, in the order in which they are tried; packages are published as JavaScript first. What can't be
// loaded is found nevertheless, so that the error names it.
var (
	ownExtensions     = []string{".tsx", ".ts", ".jsx", ".js", ".css", ".json"}
	packageExtensions = []string{".jsx", ".js", ".tsx", ".ts", ".css", ".json"}
	// writtenAs are the extensions of the TypeScript file that an import of the JavaScript file means.
	writtenAs = map[string][]string{".js": {".ts", ".tsx"}, ".jsx": {".ts", ".tsx"}, ".mjs": {".mts"}, ".cjs": {".cts"}}
)

// resolve finds what a module in dir imports. The error is errNotFound, a *manifestError, an *OutsideError, or that of a file that can't be
// looked at.
func (r *nodeResolver) resolve(specifier, dir string, kind api.ResolveKind) (resolved, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := r.find(specifier, dir, kind)
	if cut := strings.IndexAny(specifier, "?#"); errors.Is(err, errNotFound) && cut > 0 {
		plain, suffix := specifier[:cut], specifier[cut:]
		if found, err = r.find(plain, dir, kind); err == nil {
			found.suffix = suffix
		}
	}
	if err != nil {
		return resolved{}, err
	}
	found.sideEffects, err = r.hasSideEffects(found.path)
	return found, err
}

func (r *nodeResolver) find(specifier, dir string, kind api.ResolveKind) (resolved, error) {
	switch {
	case filepath.IsAbs(specifier):
		return r.fileOrDirectory(specifier)
	case specifier == "." || specifier == ".." || strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../"):
		target := filepath.Join(dir, specifier)
		if base := specifier[strings.LastIndex(specifier, "/")+1:]; base == "" || base == "." || base == ".." {
			return r.directory(target)
		}
		return r.fileOrDirectory(target)
	case strings.HasPrefix(specifier, "#"):
		scope, err := r.scope(dir)
		if err != nil || scope == nil || scope.Imports == nil {
			return resolved{}, cmp.Or(err, errNotFound)
		}
		return r.mapped(scope, scope.Imports, specifier, dir, kind, true)
	}
	return r.inPackage(specifier, dir, kind)
}

// inPackage finds an import of a package: in the package that the module itself is part of, then in node_modules upwards.
func (r *nodeResolver) inPackage(specifier, dir string, kind api.ResolveKind) (resolved, error) {
	scope, err := r.scope(dir)
	if err != nil {
		return resolved{}, err
	}
	if name, subpath, ok := packageName(specifier); ok && scope != nil && scope.Exports != nil && scope.Name == name {
		return r.mapped(scope, scope.Exports, subpath, dir, kind, false)
	}
	var outside error
	for at := dir; ; at = filepath.Dir(at) {
		modules := filepath.Join(at, modulesDir)
		if _, _, open := r.fence.inside(modules); open && filepath.Base(at) != modulesDir {
			found, err := r.installed(modules, specifier, kind)
			switch {
			case errors.As(err, new(*OutsideError)):
				outside = cmp.Or(outside, err)
			case errors.Is(err, errClosed):
				return resolved{}, errNotFound
			case !errors.Is(err, errNotFound):
				return found, err
			}
		}
		if at == filepath.Dir(at) {
			return resolved{}, cmp.Or(outside, errNotFound)
		}
	}
}

// installed finds a package in one node_modules folder.
func (r *nodeResolver) installed(modules, specifier string, kind api.ResolveKind) (resolved, error) {
	if name, subpath, ok := packageName(specifier); ok {
		home, info, err := r.look(filepath.Join(modules, name))
		if err != nil && !errors.Is(err, errNotFound) {
			return resolved{}, err
		}
		if err == nil && info.IsDir() {
			pkg, err := r.manifest(home)
			if err != nil {
				return resolved{}, err
			}
			if pkg != nil && pkg.Exports != nil {
				found, err := r.mapped(pkg, pkg.Exports, subpath, home, kind, false)
				if errors.Is(err, errNotFound) {
					err = errClosed
				}
				return found, err
			}
		}
	}
	return r.fileOrDirectory(filepath.Join(modules, specifier))
}

// mapped finds what a package's exports, or its own imports, lead to.
func (r *nodeResolver) mapped(pkg *manifest, table *jsonValue, key, dir string, kind api.ResolveKind, inner bool) (resolved, error) {
	found := table.lookUp(key, r.conditionsOf(kind), inner)
	switch found.status {
	case statusPackage:
		if name, builtin := nodeBuiltin(found.target); builtin {
			return resolved{path: "node:" + name}, errBuiltin
		}
		return r.inPackage(found.target, dir, kind)
	case statusInexact:
		return r.fileOrDirectory(filepath.Join(pkg.dir, found.target))
	case statusExact:
		path := filepath.Join(pkg.dir, found.target)
		return r.first(append([]string{path}, asWritten(path)...))
	}
	return resolved{}, errNotFound
}

func (r *nodeResolver) conditionsOf(kind api.ResolveKind) []string {
	if kind == api.ResolveJSRequireCall || kind == api.ResolveJSRequireResolve {
		return append(slices.Clone(r.conditions), "require", "default")
	}
	return append(slices.Clone(r.conditions), "import", "default")
}

func (r *nodeResolver) fileOrDirectory(path string) (resolved, error) {
	found, err := r.file(path)
	if errors.Is(err, errNotFound) {
		return r.directory(path)
	}
	return found, err
}

// file tries a name, the name with an extension, and the name as TypeScript is written.
func (r *nodeResolver) file(path string) (resolved, error) {
	tries := []string{path}
	for _, extension := range extensionsFor(path) {
		tries = append(tries, path+extension)
	}
	return r.first(append(tries, asWritten(path)...))
}

// asWritten gives the names of the TypeScript files that a name may mean.
func asWritten(path string) []string {
	var names []string
	extension := filepath.Ext(path)
	for _, written := range writtenAs[extension] {
		names = append(names, strings.TrimSuffix(path, extension)+written)
	}
	return names
}

// first finds the first of several names that is a file.
func (r *nodeResolver) first(names []string) (resolved, error) {
	for _, name := range names {
		real, info, err := r.look(name)
		if errors.Is(err, errNotFound) || err == nil && info.IsDir() {
			continue
		}
		return resolved{path: real}, err
	}
	return resolved{}, errNotFound
}

// directory tries the main module of a folder's package.json, then its index.
func (r *nodeResolver) directory(path string) (resolved, error) {
	dir, info, err := r.look(path)
	if err != nil || !info.IsDir() {
		return resolved{}, cmp.Or(err, errNotFound)
	}
	pkg, err := r.manifest(dir)
	if err != nil {
		return resolved{}, err
	}
	if pkg != nil {
		for _, main := range pkg.mains() {
			found, err := r.file(filepath.Join(dir, main))
			if errors.Is(err, errNotFound) {
				found, err = r.index(filepath.Join(dir, main))
			}
			if !errors.Is(err, errNotFound) {
				return found, err
			}
		}
	}
	return r.index(dir)
}

func (r *nodeResolver) index(dir string) (resolved, error) {
	var names []string
	for _, extension := range extensionsFor(dir) {
		names = append(names, filepath.Join(dir, "index"+extension))
	}
	return r.first(names)
}

func extensionsFor(path string) []string {
	if strings.Contains(path+"/", "/"+modulesDir+"/") {
		return packageExtensions
	}
	return ownExtensions
}

// look gives what a path leads to; errNotFound where nothing is there.
func (r *nodeResolver) look(path string) (string, fs.FileInfo, error) {
	if _, _, open := r.fence.inside(path); !open {
		return "", nil, &OutsideError{Path: path}
	}
	real, info, err := r.fence.stat(path)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		err = errNotFound
	}
	return real, info, err
}

// packageName parts an import into the package and the path in it: "." or "./…".
func packageName(specifier string) (name, subpath string, ok bool) {
	name, rest, _ := strings.Cut(specifier, "/")
	if strings.HasPrefix(name, "@") {
		second, _, _ := strings.Cut(rest, "/")
		if second == "" {
			return "", "", false
		}
		name += "/" + second
	}
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "\\%\x00") {
		return "", "", false
	}
	return name, "." + specifier[len(name):], true
}
