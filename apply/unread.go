package apply

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds of the look for files that are not read; see Set.Unread.
const (
	scanEntries = 5000
	scanDepth   = 8
	scanHead    = 64 << 10
	scanBytes   = 32 << 20
)

// An unreadFile looks like a manifest and is not read.
type unreadFile struct {
	path string
	refs []Ref // the objects that it holds, as far as they could be made out
	// whole says that refs are all that it holds.
	whole bool
}

// sum tells two contents apart by the names of their objects. It goes to the inventory, so it must not depend on values
// of Secrets.
func (u unreadFile) sum() string {
	parts := [][]byte{}
	if !u.whole {
		parts = append(parts, nil)
	}
	for _, r := range u.refs {
		parts = append(parts, []byte(r.String()))
	}
	return hash(parts...)[:12]
}

// holding returns those of the refs that the file holds an object of. A file may leave the namespace open.
func (u unreadFile) holding(refs []Ref) []Ref {
	var held []Ref
	for _, ref := range refs {
		if slices.ContainsFunc(u.refs, func(r Ref) bool {
			if r.Namespace == "" {
				r.Namespace = ref.Namespace
			}
			return r.key() == ref.key()
		}) {
			held = append(held, ref)
		}
	}
	return held
}

// mayHold says that the file can be where one of the objects went: it holds one of that kind, under whatever name, or
// could not be made out.
func (u unreadFile) mayHold(refs []Ref) bool {
	return !u.whole || slices.ContainsFunc(refs, func(ref Ref) bool {
		return slices.ContainsFunc(u.refs, func(r Ref) bool { return r.Group == ref.Group && r.Kind == ref.Kind })
	})
}

// A scan looks for files that look like manifests and are not read, the nearest first, and leaves what it may not read.
type scan struct {
	root    *os.Root
	read    map[string]int
	targets []fs.FileInfo // of the files that were read by a symbolic link
	seen    map[string]bool
	entries int
	bytes   int
	found   []unreadFile
	cut     bool
}

// unreadIn looks into the directories and below them.
func unreadIn(root *os.Root, read map[string]int, dirs []string) (found []unreadFile, cut bool) {
	s := &scan{root: root, read: read, seen: map[string]bool{}}
	for file := range read {
		if link, err := root.Lstat(file); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			if info, err := root.Stat(file); err == nil {
				s.targets = append(s.targets, info)
			}
		}
	}
	for depth := 0; len(dirs) > 0; depth++ {
		if depth > scanDepth {
			s.cut = true
			break
		}
		var below []string
		for _, dir := range dirs {
			below = append(below, s.look(dir)...)
		}
		dirs = below
	}
	slices.SortFunc(s.found, func(a, b unreadFile) int { return cmp.Compare(a.path, b.path) })
	return s.found, s.cut
}

// look looks at the files of one directory and returns the directories in it.
func (s *scan) look(dir string) (below []string) {
	if s.seen[dir] {
		return nil
	}
	s.seen[dir] = true
	for _, e := range s.list(dir) {
		at := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules":
			below = append(below, at)
		case e.Type().IsRegular():
			s.file(at)
		}
	}
	return below
}

// list lists a directory as far as the bound allows.
func (s *scan) list(dir string) []fs.DirEntry {
	if info, err := s.root.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	left := scanEntries - s.entries
	if left <= 0 {
		s.cut = true
		return nil
	}
	f, err := s.root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(left + 1) // what it could list it returns
	if len(entries) > left {
		s.cut, entries = true, entries[:left]
	}
	s.entries += len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries
}

// file looks at one regular file.
func (s *scan) file(at string) {
	if _, ok := s.read[at]; ok {
		return
	}
	if s.bytes >= scanBytes {
		s.cut = true
		return
	}
	head, info, err := s.head(at)
	if err != nil || !looksLikeManifest(head) {
		return
	}
	if slices.ContainsFunc(s.targets, func(t fs.FileInfo) bool { return os.SameFile(t, info) }) {
		return
	}
	docs, problems := parse(at, head)
	all := info.Size() <= int64(len(head))
	if all && len(docs) == 0 && isFlow(bytes.TrimSpace(head)) {
		return // JSON that has the keys further down
	}
	u := unreadFile{path: at, whole: all && len(problems) == 0}
	for _, d := range docs {
		u.refs = append(u.refs, RefOf(d.object))
	}
	s.found = append(s.found, u)
}

func (s *scan) head(at string) ([]byte, fs.FileInfo, error) {
	f, err := s.root.Open(filepath.FromSlash(at))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil, cmp.Or(err, errIrregular)
	}
	head, err := io.ReadAll(io.LimitReader(f, scanHead))
	s.bytes += len(head)
	return head, info, err
}

// looksLikeManifest says that one of the documents of a text begins with a key, or a brace, and has apiVersion and kind
// at its top. So a page of prose or a program that quotes a manifest is none, and a template of one is. What kustomize
// alone reads is none either.
func looksLikeManifest(text []byte) bool {
	if bytes.IndexByte(text, 0) >= 0 {
		return false
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if isFlow(bytes.TrimSpace(text)) {
		return hasKeys(text)
	}
	var began, version, kind, other bool // of the document
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, " \t\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("---")); ok {
			began, version, kind, other = false, false, false, false
			line = bytes.TrimSpace(rest)
		}
		switch key, value := topKey(line); {
		case bytes.HasPrefix(line, []byte("#!")), bytes.HasPrefix(line, []byte("```")), bytes.HasPrefix(line, []byte("~~~")):
			return false // a script, or Markdown
		case len(line) == 0, line[0] == '#', line[0] == '%', bytes.HasPrefix(line, []byte("{{")):
			continue
		case !began && isFlow(line):
			began, other = true, true
			if hasKeys(line) {
				return true
			}
		default:
			other = other || !began && key == "" || key == "apiVersion" && bytes.Contains(value, []byte("kustomize.config.k8s.io"))
			began, version, kind = true, version || key == "apiVersion", kind || key == "kind"
		}
		if version && kind && !other {
			return true
		}
	}
	return false
}

func isFlow(text []byte) bool {
	return len(text) > 0 && (text[0] == '{' || text[0] == '[') && !bytes.HasPrefix(text, []byte("{{"))
}

// topKey takes a line at the top of a document apart: a key, quoted or not, a colon, and a value.
func topKey(line []byte) (key string, value []byte) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	name = bytes.Trim(name, `"'`)
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t\"'{}[]") || len(value) > 0 && value[0] != ' ' && value[0] != '\t' {
		return "", nil
	}
	return string(name), value
}

// hasKeys says that a text in braces has both keys somewhere.
func hasKeys(text []byte) bool {
	for _, key := range []string{"apiVersion", "kind"} {
		found := false
		for _, rest := range bytes.Split(text, []byte(key))[1:] {
			found = found || bytes.HasPrefix(bytes.TrimLeft(rest, "\"' \t"), []byte(":"))
		}
		if !found {
			return false
		}
	}
	return true
}
