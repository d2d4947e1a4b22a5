package apply_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jr2.dev/jr2/apply"
)

// tree writes files below a directory of the test's own.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// wantSet compares the refs of the set that the sources make.
func wantSet(t *testing.T, want string, sources ...apply.Source) *apply.Set {
	t.Helper()
	s, err := apply.Read("s", "ns", sources...)
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, o := range s.Objects {
		refs = append(refs, apply.RefOf(o).String())
	}
	if got := strings.Join(refs, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	return s
}

// wantProblems compares the lines of the error; DIR stands for the directory.
func wantProblems(t *testing.T, dir string, want []string, sources ...apply.Source) {
	t.Helper()
	_, err := apply.Read("s", "ns", sources...)
	var bad *apply.SetError
	if !errors.As(err, &bad) {
		t.Errorf("got %v", err)
		return
	}
	if got, want := err.Error(), strings.ReplaceAll(strings.Join(want, "\n"), "DIR", dir); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReadStream(t *testing.T) {
	mixed := "# a comment\n---\n---\n" + `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {on: "yes", "at": "2001-01-01"}}, data: {8080: "x", day: 2001-01-01}}
- {apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}
...
`
	mixed = strings.ReplaceAll(mixed, "{on:", `{"on":`)
	s := wantSet(t, "ConfigMap a, ConfigMap c, Service b", apply.Stream("in", strings.NewReader(mixed)))
	if raw, _ := s.Objects[0].MarshalJSON(); !strings.Contains(string(raw), `"data":{"8080":"x","day":"2001-01-01"}`) {
		t.Errorf("got %s", raw)
	}
	json := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"smile":"\ud83d\ude00"}}
	{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`
	s = wantSet(t, "ConfigMap a, ConfigMap b", apply.Stream("in", strings.NewReader(json)))
	if raw, _ := s.Objects[0].MarshalJSON(); !strings.Contains(string(raw), "😀") {
		t.Errorf("got %s", raw)
	}
	wantSet(t, "", apply.Stream("empty", strings.NewReader("# nothing\n")), apply.Source{})
	s = wantSet(t, "Deployment.apps a", apply.Stream("anchors", strings.NewReader(`x: &x {name: c}
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {template: {spec: {containers: [{<<: *x, image: i}]}}}
`)))
	if raw, _ := s.Objects[0].MarshalJSON(); !strings.Contains(string(raw), `{"image":"i","name":"c"}`) {
		t.Errorf("got %s", raw)
	}
}

// Every fault of every source comes back at once, each with its place. F01: labels and annotations are text; F17: keys of lists.
func TestReadTellsEveryProblemAtOnce(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  name: b
data:
  k: "1"
  j: "1"
  k: "2"
---
[1, 2]
---
kind: ConfigMap
metadata: {namespace: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, annotations: {team: core, debug: true, flag: yes}, labels: {tier: 1}}
`,
		"b.yml": `apiVersion: v1
kind: Secret
metadata: {name: s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
`,
		"c.json":    "\n{\"kind\": \"X\", \"kind\": \"Y\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"y\"}}",
		"d.yaml":    "on: push\na: [",
		"e.yaml":    "apiVersion: v1\nkind: Service\nmetadata: {name: dup}\nspec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}",
		"notes.txt": "no manifest",
	})
	wantProblems(t, dir, []string{
		`DIR/a.yaml:5: mapping key "name" already defined at line 4`,
		`DIR/a.yaml:9: mapping key "k" already defined at line 7`,
		`DIR/a.yaml:11: the document is no object but an array`,
		`DIR/a.yaml:13: the object lacks apiVersion, metadata.name`,
		`DIR/c.json:2: duplicate field "kind"`,
		`DIR/d.yaml:2: did not find expected node content`,
		`DIR/b.yml:5: ConfigMap c: it is in the set already, from DIR/a.yaml:16`,
		`in:1: Secret s: it is in the set already, from DIR/b.yml:1`,
		`DIR/a.yaml:16: ConfigMap c: metadata.annotations.debug: want string, got boolean`,
		`DIR/a.yaml:16: ConfigMap c: metadata.annotations.flag: want string, got boolean`,
		`DIR/a.yaml:16: ConfigMap c: metadata.labels.tier: want string, got number`,
		`DIR/e.yaml:1: Service dup: spec.ports[1]: duplicate entries for key [port=80,protocol="TCP"]`,
	}, apply.Directory(dir), apply.Stream("in", strings.NewReader("{apiVersion: v1, kind: Secret, metadata: {name: s}}")))
}

func TestReadRefusesOddYAML(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"boolean key", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  on: x", "in:5: the key on is no text; quote it"},
		{"null key", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {~: x}", "in:4: the key ~ is no text; quote it"},
		{"name that is a number", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 7}", "in:1: metadata.name: want string, got number"},
		{"name that is a boolean", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}", "in:1: metadata.name: want string, got boolean"},
		{"namespace that is a number", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: 7}", "in:1: ConfigMap a: metadata.namespace: want string, got number"},
		{"version", "apiVersion: a/b/c\nkind: X\nmetadata: {name: a}", "in:1: apiVersion: unexpected GroupVersion string: a/b/c"},
		{"item of a list", "apiVersion: v1\nkind: List\nitems: [1]", "in:1: items[0]: the document is no object but a number"},
		{"not a number", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {x: .nan}", "json: unsupported value: NaN"},
		{"alias of itself", "a: &a [*a]", "anchor 'a' value contains itself"},
		{"aliases that multiply", "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]", "excessive aliasing"},
	} {
		_, err := apply.Read("s", "ns", apply.Stream("in", strings.NewReader(tt.text)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// A directory is read without its directories, and nothing outside of it is.
func TestReadDirectoryStaysInside(t *testing.T) {
	const doc = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}}"
	named := func(name string) string { return strings.ReplaceAll(doc, "NAME", name) }
	dir := tree(t, map[string]string{"b.yaml": named("b"), "a.yml": named("a"), "sub/c.yaml": named("c"), ".d.yaml": named("d"), "sub/linked": named("linked"), "e.yaml/x": ""})
	outside := tree(t, map[string]string{"secret.yaml": named("outside")})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink("sub/linked", filepath.Join(dir, "link.yaml")))
	wantSet(t, "ConfigMap a, ConfigMap b, ConfigMap linked", apply.Directory(dir))
	must(os.Symlink(filepath.Join(outside, "secret.yaml"), filepath.Join(dir, "abs.yaml")))
	must(os.Symlink("../"+filepath.Base(outside)+"/secret.yaml", filepath.Join(dir, "up.yaml")))
	must(os.Symlink("nowhere.yaml", filepath.Join(dir, "broken.yaml")))
	must(syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	wantProblems(t, dir, []string{
		"DIR/abs.yaml: path escapes from parent", "DIR/broken.yaml: no such file or directory", "DIR/pipe.yaml: it is no regular file", "DIR/up.yaml: path escapes from parent",
	}, apply.Directory(dir))
	empty := t.TempDir()
	wantProblems(t, empty, []string{"DIR: it holds no *.yaml, *.yml or *.json and no kustomization"}, apply.Directory(empty))
	wantProblems(t, empty, []string{"DIR/none: no such file or directory"}, apply.Directory(empty+"/none"))
}

func layered(t *testing.T, more string) string {
	return tree(t, map[string]string{
		"base/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator: [{name: conf, files: [key=app.conf], envs: [vars.env]}]",
		"base/web.yaml":           "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: web}]}}}",
		"base/app.conf":           "x", "base/vars.env": "A=1",
		"prod/kustomization.yaml": "resources: [../base]\nnamespace: prod\nimages: [{name: web, newName: registry.example/web, newTag: v2}]\npatches: [{path: patch.yaml}]\n" + more,
		"prod/patch.yaml":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}",
		"prod/label.yaml":         "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]",
	})
}

func TestReadKustomization(t *testing.T) {
	dir := layered(t, "transformers: [label.yaml]")
	s := wantSet(t, "ConfigMap prod/conf-dmc89245b8, Deployment.apps prod/web", apply.Kustomization(dir, "prod"))
	raw, _ := s.Objects[1].MarshalJSON()
	for _, want := range []string{`"replicas":3`, `"registry.example/web:v2"`, `"labels":{"a":"b"}`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	s, err := apply.Read("s", "ns", apply.Directory(filepath.Join(dir, "base")))
	if err != nil || len(s.Objects) != 2 {
		t.Errorf("the directory itself: %v", err)
	}
	wantProblems(t, dir, []string{"DIR/prod/kustomization.yaml: ../base: it lies outside of DIR/prod"}, apply.Directory(filepath.Join(dir, "prod")))
}

// A kustomization reaches no other host, runs nothing, and is read as strictly as a file.
func TestReadKustomizationIsShutIn(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = transport(func(r *http.Request) (*http.Response, error) {
		t.Errorf("a request to %s", r.URL)
		return nil, errors.New("no network")
	})
	for more, want := range map[string]string{
		"components: [\"https://example.com/c.yaml\"]":                      "https://example.com/c.yaml: nothing is read from the network",
		"components: [\"git@example.com:a/b\"]":                             "nothing is read from the network",
		"bases: [\"https://example.com/b\"]":                                "nothing is read from the network",
		"components: [github.com/a/b]":                                      "nothing is read from the network",
		"components: [\"file:///etc\"]":                                     "nothing is read from the network",
		"configurations: [\"http://example.com/x\"]":                        "nothing is read from the network",
		"secretGenerator: [{name: s, files: [\"k=http://example.com/x\"]}]": "nothing is read from the network",
		"secretGenerator: [{name: s, files: [k=/etc/hostname]}]":            "/etc/hostname: it lies outside of DIR",
		"secretGenerator: [{name: s, envs: [../../x]}]":                     "../../x: it lies outside of DIR",
		"secretGenerator: [{name: s, files: [none]}]":                       "prod/none: no such file or directory",
		"replacements: [{path: \"https://example.com/r\"}]":                 "nothing is read from the network",
		"openapi: {path: \"https://example.com/r\"}":                        "nothing is read from the network",
		"generators: [gen.yaml]":                                            "external plugins disabled",
		"generators:\n- |-\n  {apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: g}, files: [\"https://example.com/x\"]}": "nothing is read from the network",
		"helmCharts: [{name: c, repo: \"https://example.com\"}]":                                                                        "must specify --enable-helm",
		"namePrefix: a\nnamePrefix: b": `DIR/prod/kustomization.yaml:6: mapping key "namePrefix" already defined at line 5`,
		"nonsense: 1":                  "nonsense",
		"components: [dup.yaml]":       `DIR/prod/dup.yaml:1: mapping key "kind" already defined at line 1`,
		"components: [link.yaml]":      "path escapes from parent",
		"components: [empty]":          "DIR/prod/empty: it holds no kustomization",
	} {
		dir := layered(t, more)
		outside := tree(t, map[string]string{"x.yaml": "a: 1"})
		for name, text := range map[string]string{
			"gen.yaml": "{apiVersion: example.com/v1, kind: Gen, metadata: {name: g, annotations: {config.kubernetes.io/function: 'exec: {path: ./x}'}}}",
			"dup.yaml": "{apiVersion: v1, kind: A, kind: B, metadata: {name: x}}", "empty/x": "",
		} {
			path := filepath.Join(dir, "prod", name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Join(outside, "x.yaml"), filepath.Join(dir, "prod/link.yaml")); err != nil {
			t.Fatal(err)
		}
		_, err := apply.Read("s", "ns", apply.Kustomization(dir, "prod"))
		if want = strings.ReplaceAll(want, "DIR", dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", more, err, want)
		}
	}
}
