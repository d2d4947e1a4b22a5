package assembly

import (
	"archive/tar"
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

// instance is a folder at root, with two Workflows and an image context.
func instance(root string) (*config.Instance, map[string]string) {
	image := "file://" + root + "/images/tools/"
	inst := &config.Instance{
		Name: "my-instance", Root: root, File: root + "/jr2.config.ts", KitVersion: "0.3.0", DefaultImage: root + "/images/default",
		Workflows: []config.Workflow{
			{Name: "ping", File: root + "/workflows/ping.ts"},
			{Name: "hold", File: root + "/workflows/hold.ts", Workspaces: []config.Workspace{{Image: image}}},
		},
		Modules: []config.Module{
			{Name: "ping", Source: []byte("export const machine = 1;\n")},
			{Name: "jr2.config", Source: []byte("export default {};\n")},
			{Name: "hold", Source: []byte("export const machine = 2;\n")},
		},
		Notes: []string{"found at " + root},
	}
	return inst, map[string]string{image: "0123456789ab", "file://" + root + "/images/default": "6389bdf72d50", root + "/images/default": "6389bdf72d50"}
}

func build(t *testing.T, inst *config.Instance, contexts map[string]string) *Assembly {
	t.Helper()
	a, err := Build(inst, contexts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestBuild(t *testing.T) {
	a := build(t, first(instance("/src/a")), second(instance("/src/a")))
	if len(a.Hash) != 12 || strings.Trim(a.Hash, "0123456789abcdef") != "" {
		t.Errorf("the hash is %q", a.Hash)
	}
	if !reflect.DeepEqual(a.Manifest.Workflows, []string{"hold", "ping"}) {
		t.Errorf("workflows %v", a.Manifest.Workflows)
	}
	if want := map[string]string{"images/tools": "0123456789ab", "images/default": "6389bdf72d50"}; !maps.Equal(a.Manifest.Contexts, want) {
		t.Errorf("contexts %v, want %v", a.Manifest.Contexts, want)
	}
	var paths []string
	for _, m := range a.Modules {
		paths = append(paths, m.Path)
	}
	if want := []string{"jr2.config.mjs", "workflows/hold.mjs", "workflows/ping.mjs"}; !slices.Equal(paths, want) {
		t.Errorf("modules %v, want %v", paths, want)
	}
	opened, err := Open(a.Archive)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(opened, a) {
		t.Errorf("opened %+v, built %+v", opened, a)
	}
}

func first(inst *config.Instance, _ map[string]string) *config.Instance       { return inst }
func second(_ *config.Instance, contexts map[string]string) map[string]string { return contexts }

func TestHashNamesTheContentAlone(t *testing.T) {
	base := build(t, first(instance("/src/a")), second(instance("/src/a")))
	for name, test := range map[string]struct {
		change func(*config.Instance, map[string]string)
		same   bool
	}{
		"nothing":           {func(*config.Instance, map[string]string) {}, true},
		"order of modules":  {func(i *config.Instance, _ map[string]string) { slices.Reverse(i.Modules) }, true},
		"order of Workflow": {func(i *config.Instance, _ map[string]string) { slices.Reverse(i.Workflows) }, true},
		"a note":            {func(i *config.Instance, _ map[string]string) { i.Notes = nil }, true},
		"a secret": {func(i *config.Instance, _ map[string]string) {
			i.Secrets = []config.HeldSecret{{Name: "A", Value: config.NewSecret("v")}}
		}, true},
		"a byte of a module": {func(i *config.Instance, _ map[string]string) {
			i.Modules[0].Source = []byte("export const machine = 9;\n")
		}, false},
		"a module's name":  {func(i *config.Instance, _ map[string]string) { i.Modules[0].Name = "pong" }, false},
		"no Workflow":      {func(i *config.Instance, _ map[string]string) { i.Workflows = nil }, false},
		"the Kit":          {func(i *config.Instance, _ map[string]string) { i.KitVersion = "0.3.1" }, false},
		"the Instance":     {func(i *config.Instance, _ map[string]string) { i.Name = "other" }, false},
		"an image context": {func(i *config.Instance, c map[string]string) { c[i.Workflows[1].Workspaces[0].Image] = "ffffffffffff" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inst, contexts := instance("/src/a")
			test.change(inst, contexts)
			if same := build(t, inst, contexts).Hash == base.Hash; same != test.same {
				t.Errorf("same hash: %v, want %v", same, test.same)
			}
		})
	}
	elsewhere := build(t, first(instance("/home/b/deep")), second(instance("/home/b/deep")))
	if !bytes.Equal(elsewhere.Archive, base.Archive) {
		t.Error("the folder's place is in the archive")
	}
}

// Neither the border of two files nor the place of a byte may be lost in the hash.
func TestHashKeepsEntriesApart(t *testing.T) {
	for _, pair := range [][2][]entry{
		{{{"a", []byte("x1:b\ny")}}, {{"a", []byte("x")}, {"b", []byte("y")}}},
		{{{"a", []byte("")}, {"b", []byte("z")}}, {{"a", []byte("z")}, {"b", []byte("")}}},
		{{}, {{"a", nil}}},
	} {
		if hash(pair[0]) == hash(pair[1]) {
			t.Errorf("%q and %q have one hash", pair[0], pair[1])
		}
	}
}

func TestBuildFromAGoValue(t *testing.T) {
	value := func(root, secret, registry string) *config.Instance {
		inst, _ := instance(root)
		inst.Modules = nil
		inst.Registry = &registry
		inst.Secrets = []config.HeldSecret{{Name: "A", Value: config.NewSecret(secret)}}
		inst.Harness = config.Harness{
			Provider: &config.Provider{ID: "gw", APIKey: config.NewSecret(secret)},
			Env:      []config.HarnessEnv{{Name: "E", Value: config.NewSecret(secret)}},
		}
		return inst
	}
	one, two := value("/src/a", "hidden-one", "r.example.com/one"), value("/home/b", "hidden-two", "r.example.com/two")
	a := build(t, one, nil)
	if b := build(t, two, nil); !bytes.Equal(a.Archive, b.Archive) {
		t.Errorf("differs with machine or secrets:\n%s\n%s", a.Manifest.Config, b.Manifest.Config)
	}
	if bytes.Contains(a.Archive, []byte("hidden")) || bytes.Contains(a.Archive, []byte("/src/a")) {
		t.Errorf("the archive holds a secret or a path: %s", a.Manifest.Config)
	}
	if len(a.Modules) != 0 || !bytes.Contains(a.Manifest.Config, []byte(`"images/tools"`)) {
		t.Errorf("config %s", a.Manifest.Config)
	}
	if one.Secrets[0].Value.Reveal() != "hidden-one" || one.Harness.Provider.APIKey.Reveal() != "hidden-one" || one.Root != "/src/a" ||
		one.Workflows[1].Workspaces[0].Image != "file:///src/a/images/tools/" {
		t.Error("Build changed the Instance")
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, modules := range map[string][]config.Module{
		"a path":    {{Name: "../x"}},
		"no name":   {{Name: ""}},
		"one twice": {{Name: "x"}, {Name: "x"}},
		"too large": {{Name: "x", Source: make([]byte, MaxSize)}},
	} {
		inst, _ := instance("/src/a")
		inst.Modules = modules
		if a, err := Build(inst, nil); err == nil {
			t.Errorf("%s: built %s", name, a.Hash)
		} else if tooLarge := errors.Is(err, ErrTooLarge); tooLarge != (name == "too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	manifest := `{"format":1,"kit":"1","instance":"i","workflows":[]}`
	file := func(name, text string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Linkname: text}
	}
	good := build(t, first(instance("/src/a")), nil).Archive
	for name, archive := range map[string][]byte{
		"nothing":          nil,
		"no tar":           []byte(strings.Repeat("x", 2000)),
		"no manifest":      tarOf(t, file("a.mjs", "x")),
		"no JSON":          tarOf(t, file("manifest.json", "x")),
		"another format":   tarOf(t, file("manifest.json", `{"format":2}`)),
		"a path that ends": tarOf(t, file("../x", "y"), file("manifest.json", manifest)),
		"an absolute path": tarOf(t, file("/x", "y"), file("manifest.json", manifest)),
		"out of order":     tarOf(t, file("manifest.json", manifest), file("a.mjs", "y")),
		"one twice":        tarOf(t, file("a.mjs", "y"), file("a.mjs", "y"), file("manifest.json", manifest)),
		"a link":           tarOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a.mjs", Linkname: "/etc/passwd"}, file("manifest.json", manifest)),
		"a directory":      tarOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, file("manifest.json", manifest)),
		"cut off":          good[:700],
	} {
		if _, err := Open(archive); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(make([]byte, MaxSize+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := Open(tarOf(t, file("manifest.json", manifest))); err != nil {
		t.Errorf("the least Assembly: %v", err)
	}
}

// tarOf writes headers; the text of a regular file stands in Linkname.
func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, h := range headers {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text, h.Linkname = h.Linkname, ""
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func FuzzOpen(f *testing.F) {
	inst, contexts := instance("/src/a")
	a, err := Build(inst, contexts)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.Archive)
	f.Fuzz(func(t *testing.T, archive []byte) {
		if opened, err := Open(archive); err == nil && len(opened.Hash) != 12 {
			t.Errorf("the hash is %q", opened.Hash)
		}
	})
}
