package apply

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Source is where objects of a set are read from: Stream, Directory, Kustomization or Objects.
type Source struct {
	// read returns also what was read of which files; nil when it was no directory.
	read func() ([]document, []Problem, *folder)
}

// A document is one object as it was read, and the place where it stands: "web.yaml:12".
type document struct {
	object *unstructured.Unstructured
	origin string
}

// Read makes a Set of what the sources hold, in their order, with all the rules of NewSet. Reading is strict: a repeated key, a
// document that is no object, an object without apiVersion, kind or name, and an object that stands in two places are Problems with
// file and line. All of them, of every source, come back in one *SetError. Items of a List are objects of their own.
func Read(name, namespace string, sources ...Source) (*Set, error) {
	var all []document
	var problems []Problem
	var places reading
	for _, s := range sources {
		if s.read == nil {
			continue
		}
		docs, bad, p := s.read()
		all, problems = append(all, docs...), append(problems, bad...)
		if p != nil {
			places = append(places, p)
		}
	}
	set, err := newSet(name, namespace, all, problems)
	if err == nil {
		set.reading = places
	}
	return set, err
}

// Stream reads YAML or JSON documents. origin is the name of the stream in Problems: a file's name, or "stdin".
func Stream(origin string, r io.Reader) Source {
	return Source{func() ([]document, []Problem, *folder) {
		raw, err := io.ReadAll(r)
		if err != nil {
			return nil, []Problem{{Origin: origin, Text: err.Error()}}, nil
		}
		docs, problems := parse(origin, raw)
		return docs, problems, nil
	}}
}

// Objects takes objects of the program, which Problems call "<origin>[<index>]".
func Objects(origin string, objs ...runtime.Object) Source {
	return Source{func() (docs []document, problems []Problem, _ *folder) {
		for i, o := range objs {
			at := fmt.Sprintf("%s[%d]", origin, i)
			list, err := unstructuredOf(o)
			if err != nil {
				problems = append(problems, Problem{Origin: at, Text: err.Error()})
			}
			for _, u := range list {
				docs = append(docs, document{u, at})
			}
		}
		return docs, problems, nil
	}}
}

// Directory reads the files *.yaml, *.yml and *.json of a directory, in the order of the bytes of their names. Names that
// begin with a dot are left out, and so are directories in it; Set.Unread tells what looks like a manifest there. A
// directory that holds a kustomization is built instead, as by Kustomization with the directory itself as the root. A
// symbolic link is followed when it is relative and stays in the directory; any other is a Problem.
func Directory(dir string) Source {
	return Source{func() ([]document, []Problem, *folder) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, []Problem{{Origin: dir, Text: reason(err)}}, nil
		}
		defer root.Close()
		if kustomizationIn(root, ".") != "" {
			return build(root, dir, ".")
		}
		return readDirectory(root, dir)
	}}
}

func readDirectory(root *os.Root, dir string) (docs []document, problems []Problem, p *folder) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, []Problem{{Origin: dir, Text: reason(err)}}, nil
	}
	p = &folder{name: dir, objects: map[string]int{}, why: whyNotRead}
	for _, e := range entries { // sorted by name
		if !isManifest(e.Name()) {
			continue
		}
		origin := filepath.Join(dir, e.Name())
		raw, err := readFile(root, e.Name())
		if errors.Is(err, errDirectory) {
			continue
		}
		p.objects[e.Name()] = 0
		if err != nil {
			problems = append(problems, Problem{Origin: origin, Text: reason(err)})
			continue
		}
		more, bad := parse(origin, raw)
		p.objects[e.Name()] = len(more)
		docs, problems = append(docs, more...), append(problems, bad...)
	}
	if len(p.objects) == 0 {
		problems = append(problems, Problem{Origin: dir, Text: "it holds no *.yaml, *.yml or *.json and no kustomization"})
	}
	if len(problems) == 0 {
		p.unread, p.cut = unreadIn(root, p.objects, []string{"."})
	}
	return docs, problems, p
}

// whyNotRead is why Directory does not read a file.
func whyNotRead(file string) string {
	switch {
	case strings.Contains(file, "/"):
		return "sub-folders are not read"
	case strings.HasPrefix(file, "."):
		return "names that begin with a dot are not read"
	}
	return "only *.yaml, *.yml and *.json are read, in small letters"
}

func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(name, ".")
	}
	return false
}

var (
	errDirectory = errors.New("it is a directory")
	errIrregular = errors.New("it is no regular file")
)

// readFile reads a regular file; anything else could block for ever.
func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errDirectory
	case !info.Mode().IsRegular():
		return nil, errIrregular
	}
	return root.ReadFile(name)
}

// reason is the cause of a failed file operation without the operation and the path, which the origin names.
func reason(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
