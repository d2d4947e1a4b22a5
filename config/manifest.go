package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// errBuiltin says that an import leads to a module of Node itself.
var errBuiltin = errors.New("a module of Node")

// A manifest is a package.json, as far as it says where modules are.
type manifest struct {
	dir         string
	Name        string
	Module      string
	Main        string
	Exports     *jsonValue
	Imports     *jsonValue
	SideEffects *jsonValue
}

// A manifestError says that a package.json can't be read.
type manifestError struct {
	path string
	err  error
	// line and column of what is wrong, from 1 and 0; 0 when it is no fault of the text.
	line, column int
}

func (e *manifestError) Error() string { return fmt.Sprintf("%s: %v", e.path, e.err) }

func (e *manifestError) Unwrap() error { return e.err }

// manifest reads the package.json of a folder; nil where there is none.
func (r *nodeResolver) manifest(dir string) (*manifest, error) {
	if known, ok := r.manifests[dir]; ok {
		return known, nil
	}
	path := filepath.Join(dir, manifestName)
	text, err := r.fence.open(path, maxPackageJSON)
	var pkg *manifest
	switch {
	case errors.Is(err, fs.ErrNotExist) || isNotDir(err):
	case err != nil:
		return nil, &manifestError{path: path, err: err}
	default:
		if pkg, err = parseManifest(text); err != nil {
			return nil, badManifest(path, text, err)
		}
		pkg.dir = dir
	}
	r.manifests[dir] = pkg
	return pkg, nil
}

func badManifest(path string, text []byte, err error) error {
	bad := &manifestError{path: path, err: err, line: 1}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 && syntax.Offset <= int64(len(text)) {
		before := text[:syntax.Offset-1]
		bad.line += bytes.Count(before, []byte("\n"))
		bad.column = len(before) - 1 - bytes.LastIndexByte(before, '\n')
	}
	return bad
}

// parseManifest takes a field of another type than Node wants for one that is not there, as Node does, and a file that is no object for one without
// fields, as the bundler does. A byte order mark is no part of the text.
func parseManifest(text []byte) (*manifest, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\uFEFF")), &fields)
	if err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil, err
	}
	text1 := func(name string) (s string) {
		if json.Unmarshal(fields[name], &s) != nil {
			return ""
		}
		return s
	}
	value := func(name string) *jsonValue {
		var v jsonValue
		if fields[name] == nil || json.Unmarshal(fields[name], &v) != nil || v.kind == jsonNull {
			return nil
		}
		return &v
	}
	return &manifest{Name: text1("name"), Module: text1("module"), Main: text1("main"), Exports: value("exports"), Imports: value("imports"),
		SideEffects: value("sideEffects")}, nil
}

func (m *manifest) mains() []string {
	var mains []string
	for _, main := range []string{m.Module, m.Main} {
		if main != "" {
			mains = append(mains, main)
		}
	}
	return mains
}

// scope is the nearest package.json from a folder upwards, as far as folders are open.
func (r *nodeResolver) scope(dir string) (*manifest, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, _, open := r.fence.inside(at); !open {
			return nil, nil
		}
		if pkg, err := r.manifest(at); pkg != nil || err != nil {
			return pkg, err
		}
	}
}

// hasSideEffects reads the field by which packages say which of their modules matter though nothing of them is used:
// https://webpack.js.org/guides/tree-shaking/#mark-the-file-as-side-effect-free
func (r *nodeResolver) hasSideEffects(path string) (bool, error) {
	pkg, err := r.scope(filepath.Dir(path))
	return err != nil || pkg.effectsOf(path), err
}

func (m *manifest) effectsOf(path string) bool {
	if m == nil || m.SideEffects == nil {
		return true
	}
	switch field := m.SideEffects; field.kind {
	case jsonBool:
		return field.boolean
	case jsonArray:
		return slices.ContainsFunc(field.items, func(item jsonValue) bool {
			return item.kind == jsonString && globMatches(m.dir, item.text, path)
		})
	}
	return true
}

// globMatches knows "*" within a name, "**" over folders, and "?"; a pattern without a slash is meant at any depth.
func globMatches(dir, pattern, path string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return false
	}
	quoted := regexp.QuoteMeta(strings.TrimPrefix(pattern, "/"))
	for _, sign := range [][2]string{{`\*\*/`, `(?:.*/)?`}, {`\*\*`, `.*`}, {`\*`, `[^/]*`}, {`\?`, `[^/]`}} {
		quoted = strings.ReplaceAll(quoted, sign[0], sign[1])
	}
	matches, err := regexp.MatchString("^"+quoted+"$", filepath.ToSlash(rel))
	return err == nil && matches
}
