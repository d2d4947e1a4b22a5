package apply

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Kustomization builds a kustomization in this process, as kubectl kustomize does, and nothing else: no plugin, no function, no chart,
// no network. dir is relative to root ("overlays/prod"; "." for root itself). Bases may lie beside dir, and nothing may lie outside
// root, symbolic links resolved. A path with a colon or an at sign in it counts as one of another host.
func Kustomization(root, dir string) Source {
	return Source{func() ([]document, []Problem, *folder) {
		r, err := os.OpenRoot(root)
		if err != nil {
			return nil, []Problem{{Origin: root, Text: reason(err)}}, nil
		}
		defer r.Close()
		return build(r, root, filepath.ToSlash(filepath.Clean(dir)))
	}}
}

// build copies what the kustomization refers to into memory and lets kustomize see only that. So kustomize, which would clone and
// download what it does not find, is shown nothing that this package has not looked at.
func build(root *os.Root, name, dir string) ([]document, []Problem, *folder) {
	c := &copier{root: root, name: name, to: filesys.MakeFsInMemory(), seen: map[string]bool{}, objects: map[string]int{}}
	if c.visit(dir); len(c.problems) > 0 {
		return nil, c.problems, nil
	}
	origin := c.origin(dir)
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(c.to, path.Join("/", dir))
	if err != nil {
		return nil, []Problem{{Origin: origin, Text: err.Error()}}, nil
	}
	var docs []document
	for _, r := range made.Resources() {
		m, err := r.Map()
		if err != nil {
			return nil, []Problem{{Origin: origin, Text: err.Error()}}, nil
		}
		more, bad := documents(m, origin)
		docs, c.problems = append(docs, more...), append(c.problems, bad...)
	}
	p := &folder{name: name, objects: c.objects, why: func(string) string { return "no kustomization names it" }}
	p.unread, p.cut = unreadIn(root, c.objects, slices.Sorted(maps.Keys(c.seen)))
	return docs, c.problems, p
}

// A copier copies what kustomizations refer to, and notes what may not be referred to.
type copier struct {
	root     *os.Root
	name     string
	to       filesys.FileSystem
	seen     map[string]bool // directories that were visited
	objects  map[string]int  // how many objects each file gave that was copied, before anything was made of them
	problems []Problem
}

func (c *copier) origin(file string) string { return filepath.Join(c.name, filepath.FromSlash(file)) }

func (c *copier) problem(file, format string, args ...any) {
	c.problems = append(c.problems, Problem{Origin: c.origin(file), Text: fmt.Sprintf(format, args...)})
}

// kustomizationIn is the path of the kustomization file of a directory; "" when there is none.
func kustomizationIn(root *os.Root, dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, err := root.Lstat(path.Join(dir, name)); err == nil {
			return path.Join(dir, name)
		}
	}
	return ""
}

// visit copies the kustomization of a directory with all that it refers to.
func (c *copier) visit(dir string) {
	if c.seen[dir] {
		return
	}
	c.seen[dir] = true
	file := kustomizationIn(c.root, dir)
	if file == "" {
		c.problem(dir, "it holds no kustomization")
		return
	}
	raw, ok := c.file(file, file)
	if !ok {
		return
	}
	if _, bad := parseYAML(c.origin(file), raw); len(bad) > 0 {
		c.problems = append(c.problems, bad...)
		return
	}
	k := &types.Kustomization{}
	if err := k.Unmarshal(raw); err != nil {
		c.problem(file, "%v", err)
		return
	}
	k.FixKustomization() // among other things, bases become resources
	for _, at := range append(append([]string{}, k.Resources...), k.Components...) {
		if place, ok := c.place(file, at); ok {
			c.resource(file, place)
		}
	}
	for _, at := range filesOf(k) {
		if place, ok := c.place(file, at); ok {
			c.file(file, place)
		}
	}
	for _, at := range append(append(append([]string{}, k.Generators...), k.Transformers...), k.Validators...) {
		c.plugin(file, at)
	}
}

// resource is a file of objects, which is read as strictly as any other, or a directory with a kustomization.
func (c *copier) resource(from, place string) {
	if info, err := c.root.Stat(place); err == nil && info.IsDir() {
		c.visit(place)
		return
	}
	if raw, ok := c.file(from, place); ok {
		docs, bad := parse(c.origin(place), raw)
		c.objects[place] = len(docs)
		c.problems = append(c.problems, bad...)
	}
}

// plugin is the configuration of one of kustomize's own plugins: text in place, or a file. Every text in it that names a file is
// copied; one that names another host is refused wherever it stands.
func (c *copier) plugin(from, at string) {
	raw, origin := []byte(at), c.origin(from)
	if !inPlace(at) {
		place, ok := c.place(from, at)
		if !ok {
			return
		}
		if raw, ok = c.file(from, place); !ok {
			return
		}
		origin = c.origin(place)
	}
	values, bad := parseYAML(origin, raw)
	c.problems = append(c.problems, bad...)
	for _, v := range values {
		eachText(v.data, func(s string) {
			s = afterEquals(s)
			if low := strings.ToLower(s); strings.HasPrefix(low, "http:") || strings.HasPrefix(low, "https:") {
				c.problem(from, "%s: nothing is read from the network", s)
				return
			}
			place := path.Join(path.Dir(from), s)
			if info, err := c.root.Stat(place); filepath.IsLocal(place) && err == nil && info.Mode().IsRegular() {
				c.file(from, place)
			}
		})
	}
}

func eachText(v any, do func(string)) {
	switch v := v.(type) {
	case string:
		do(v)
	case map[string]any:
		for _, x := range v {
			eachText(x, do)
		}
	case []any:
		for _, x := range v {
			eachText(x, do)
		}
	}
}

// filesOf lists the files that a kustomization reads besides its resources.
func filesOf(k *types.Kustomization) []string {
	files := append(append([]string{}, k.Crds...), k.Configurations...)
	if p, ok := k.OpenAPI["path"]; ok {
		files = append(files, p)
	}
	//lint:ignore SA1019 what kustomize still reads must be looked at
	for _, p := range append(append([]types.Patch{}, k.Patches...), k.PatchesJson6902...) {
		files = append(files, p.Path)
	}
	//lint:ignore SA1019 as above
	for _, p := range k.PatchesStrategicMerge {
		files = append(files, string(p))
	}
	for _, r := range k.Replacements {
		files = append(files, r.Path)
	}
	var sources []types.KvPairSources
	for _, g := range k.ConfigMapGenerator {
		sources = append(sources, g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		sources = append(sources, g.KvPairSources)
	}
	for _, s := range sources {
		for _, f := range append(append([]string{s.EnvSource}, s.EnvSources...), s.FileSources...) {
			files = append(files, afterEquals(f))
		}
	}
	return files
}

// afterEquals is the path in "key=path".
func afterEquals(s string) string {
	if _, p, ok := strings.Cut(s, "="); ok {
		return p
	}
	return s
}

// inPlace says that a text is the content itself and not the path of a file.
func inPlace(at string) bool { return strings.ContainsAny(at, "\n{") }

// place is the path from the root of what a kustomization refers to.
func (c *copier) place(from, at string) (string, bool) {
	if at == "" || inPlace(at) {
		return "", false
	}
	low := strings.ToLower(at)
	if strings.ContainsAny(at, ":@") || strings.HasPrefix(low, "github.com") {
		c.problem(from, "%s: nothing is read from the network", at)
		return "", false
	}
	place := path.Join(path.Dir(from), at)
	if path.IsAbs(at) || !filepath.IsLocal(filepath.FromSlash(place)) {
		c.problem(from, "%s: it lies outside of %s", at, c.name)
		return "", false
	}
	return place, true
}

// file copies one file.
func (c *copier) file(from, place string) ([]byte, bool) {
	raw, err := readFile(c.root, place)
	if err == nil {
		err = c.to.WriteFile(path.Join("/", place), raw)
	}
	if err != nil {
		c.problem(from, "%s: %s", place, reason(err))
		return nil, false
	}
	c.objects[place] = max(c.objects[place], 0) // known, whatever it gives
	return raw, true
}
