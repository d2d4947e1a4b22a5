package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// A manifestFolder is a directory of manifests that is applied as the set "app"; NS stands for the namespace in its
// files.
type manifestFolder struct {
	t       *testing.T
	dir, ns string
}

// A folderFiles is the texts of a folder by path.
type folderFiles map[string]string

func newManifestFolder(t *testing.T, texts folderFiles) *manifestFolder {
	t.Helper()
	f := &manifestFolder{t: t, dir: t.TempDir(), ns: newNamespace(t, nil)}
	f.write(texts)
	return f
}

func (f *manifestFolder) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *manifestFolder) write(texts folderFiles) {
	f.t.Helper()
	for name, text := range texts {
		path := filepath.Join(f.dir, name)
		f.must(os.MkdirAll(filepath.Dir(path), 0o755))
		f.must(os.WriteFile(path, []byte(strings.ReplaceAll(text, "NS", f.ns)), 0o600))
	}
}

func (f *manifestFolder) remove(names ...string) {
	f.t.Helper()
	for _, name := range names {
		f.must(os.Remove(filepath.Join(f.dir, name)))
	}
}

func (f *manifestFolder) move(from, to string) {
	f.t.Helper()
	f.must(os.MkdirAll(filepath.Dir(filepath.Join(f.dir, to)), 0o755))
	f.must(os.Rename(filepath.Join(f.dir, from), filepath.Join(f.dir, to)))
}

func (f *manifestFolder) set() *apply.Set {
	f.t.Helper()
	s, err := apply.Read("app", f.ns, apply.Directory(f.dir))
	f.must(err)
	return s
}

// inventory is the version of the inventory: it moves with each write.
func (f *manifestFolder) inventory() string {
	f.t.Helper()
	m, err := typed(f.t).CoreV1().ConfigMaps(f.ns).Get(f.t.Context(), apply.InventoryName("app"), metav1.GetOptions{})
	f.must(err)
	return m.ResourceVersion
}

// isThere asks the server for a ConfigMap or a Deployment.
func (f *manifestFolder) isThere(ref apply.Ref) bool {
	f.t.Helper()
	var err error
	if ref.Kind == "Deployment" {
		_, err = typed(f.t).AppsV1().Deployments(ref.Namespace).Get(f.t.Context(), ref.Name, metav1.GetOptions{})
	} else {
		_, err = typed(f.t).CoreV1().ConfigMaps(ref.Namespace).Get(f.t.Context(), ref.Name, metav1.GetOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		f.t.Fatal(err)
	}
	return err == nil
}

const (
	itsNamespace  = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}\n"
	itsDeployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: NS}\nspec:\n  selector: {matchLabels: {app: web}}\n" +
		"  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: \"registry.example/web:1\"}]}\n"
)

// What happens to a folder between two applies.
type folderChange func(f *manifestFolder)

func moves(from, to string) folderChange    { return func(f *manifestFolder) { f.move(from, to) } }
func writes(texts folderFiles) folderChange { return func(f *manifestFolder) { f.write(texts) } }
func removes(names ...string) folderChange {
	return func(f *manifestFolder) { f.remove(names...) }
}
func patches(inventory string) folderChange {
	return func(f *manifestFolder) { f.patchInventory(inventory) }
}
func inTurn(changes ...folderChange) folderChange {
	return func(f *manifestFolder) {
		for _, c := range changes {
			c(f)
		}
	}
}

// elsewhere is another directory for the same set.
func goesElsewhere(texts folderFiles) folderChange {
	return func(f *manifestFolder) {
		f.dir = f.t.TempDir()
		f.write(texts)
	}
}

func manifests(prefix string, n int) string {
	var docs []string
	for i := range n {
		docs = append(docs, manifest(fmt.Sprint(prefix, "-", i)))
	}
	return strings.Join(docs, "---\n")
}

// Field case F46 and its siblings: the plan and the run say what would go and why it may be an accident, nothing is
// written, and who agrees to it has it.
func TestF46APruneThatLooksLikeAnAccident(t *testing.T) {
	t.Parallel()
	web := folderFiles{"ns.yaml": itsNamespace, "keep.yaml": manifest("keep"), "web.yaml": manifest("web")}
	const (
		unread    = "it looks like a manifest of ConfigMap NS/web and is not read: "
		fresh     = "it looks like a manifest, is new since the last apply, and is not read: "
		gives     = "web.yaml: it gave 1 object at the last apply, and gives none now"
		wasRead   = "web.yaml: it gave 1 object at the last apply, and is still there and not read now: no kustomization names it"
		folder    = "sub-folders are not read"
		extension = "only *.yaml, *.yml and *.json are read, in small letters"
		which     = "it may be another directory, or the name of another set"
	)
	for _, tt := range []struct {
		name   string
		before folderFiles
		change folderChange
		want   string
	}{
		{"moved into a folder", folderFiles{"ns.yaml": itsNamespace, "web.yaml": itsDeployment}, moves("web.yaml", "apps/web.yaml"),
			"apps/web.yaml: it looks like a manifest of Deployment.apps NS/web and is not read: " + folder},
		{"moved and given another name", web,
			inTurn(removes("web.yaml"), writes(folderFiles{"apps/web.yaml": manifest("web2")})), "apps/web.yaml: " + fresh + folder},
		{"moved and no YAML any more", web,
			inTurn(removes("web.yaml"), writes(folderFiles{"web.tpl": manifest("{{ web }}")})), "web.tpl: " + fresh + extension},
		{"into a file that was not read before",
			folderFiles{"keep.yaml": manifest("keep"), "web.yaml": manifest("web"), "apps/all.yaml": manifest("x")},
			inTurn(removes("web.yaml"), writes(folderFiles{"apps/all.yaml": manifest("x") + "---\n" + manifest("web")})),
			"apps/all.yaml: " + unread + folder},
		{"an extension in capitals", web, moves("web.yaml", "web.YAML"), "web.YAML: " + unread + extension},
		{"a backup", web, moves("web.yaml", "web.yaml.bak"), "web.yaml.bak: " + unread + extension},
		{"emptied", web, writes(folderFiles{"web.yaml": ""}), gives},
		{"commented out", web,
			writes(folderFiles{"web.yaml": "# " + strings.ReplaceAll(strings.TrimSpace(manifest("web")), "\n", "\n# ")}), gives},
		{"documents without a word", web, writes(folderFiles{"web.yaml": "---\n---\n"}), gives},
		{"the directory became a kustomization", web,
			writes(folderFiles{"kustomization.yaml": "resources: [ns.yaml, keep.yaml]"}), wasRead},
		{"a kustomization dropped a resource",
			folderFiles{"kustomization.yaml": "resources: [keep.yaml, web.yaml]", "keep.yaml": manifest("keep"), "web.yaml": manifest("web")},
			writes(folderFiles{"kustomization.yaml": "resources: [keep.yaml]"}), wasRead},
		{"an overlay dropped a base",
			folderFiles{
				"kustomization.yaml":   "resources: [a, b]\nnamePrefix: w",
				"a/kustomization.yaml": "resources: [keep.yaml]", "a/keep.yaml": manifest("keep"),
				"b/kustomization.yaml": "resources: [web.yaml]", "b/web.yaml": manifest("eb"),
			},
			writes(folderFiles{"kustomization.yaml": "resources: [a]\nnamePrefix: w"}), "b/" + wasRead},
		{"another directory", folderFiles{"ns.yaml": itsNamespace, "web.yaml": manifest("web")},
			goesElsewhere(folderFiles{"api.yaml": manifest("api")}), "nothing of what the set holds stays: " + which},
		{"the name of another set", folderFiles{"ns.yaml": itsNamespace, "web.yaml": manifest("web") + "---\n" + manifests("web", 3)},
			goesElsewhere(folderFiles{"ns.yaml": itsNamespace, "web.yaml": manifests("api", 3)}), "nothing of what the set holds stays: " + which},
		{"most of the set", folderFiles{"keep.yaml": manifests("keep", 9), "web.yaml": manifest("web") + "---\n" + manifests("web", 10)},
			removes("web.yaml"), "11 objects go and 9 stay: " + which},
		{"an inventory of before", web, inTurn(patches(`{"data":{"reading.json":null}}`), moves("web.yaml", "apps/web.yaml")),
			"apps/web.yaml: " + unread + folder},
		{"an apply without a prune in between", web, inTurn(writes(folderFiles{"web.yaml": ""}), func(f *manifestFolder) {
			mustApply(f.t, f.set(), apply.Options{})
		}), gives},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newManifestFolder(t, tt.before)
			opts := apply.Options{Prune: true}
			mustApply(t, f.set(), opts)
			tt.change(f)
			goes := configMap(f.ns, "web")
			if strings.Contains(tt.want, "Deployment") {
				goes = apply.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: f.ns, Name: "web"}
			}
			version := f.inventory()
			want := tt.want
			if !strings.HasSuffix(want, which) {
				want = f.dir + "/" + want
			}
			want = strings.ReplaceAll(want, "NS", f.ns)

			p := mustPlan(t, f.set(), opts)
			if p.Accident == nil || len(p.Accident.Doubts) != 1 || p.Accident.Doubts[0].String() != want {
				t.Fatalf("the plan has %+v\nwant %s", p.Accident, want)
			}
			text := p.String()
			holdsAll(t, text, "\nprune       "+goes.String()+"\n", "\nwhich looks like an accident:\n            "+want+"\n")
			if !strings.HasPrefix(text, "DELETES ") {
				t.Errorf("the plan begins with something else:\n%s", text)
			}
			var accident *apply.AccidentError
			if !errors.As(p.Err(), &accident) {
				t.Errorf("the plan has no error: %v", p.Err())
			}
			out, err := apply.Apply(t.Context(), config(t), f.set(), opts)
			if !errors.As(err, &accident) || len(out.Objects) > 0 {
				t.Fatalf("got %v, %+v", err, out.Objects)
			}
			holdsAll(t, err.Error(), want, goes.String(), "Options.AllowPrune")
			if !f.isThere(goes) || f.inventory() != version {
				t.Errorf("something was written")
			}

			opts.AllowPrune = true
			if p := mustPlan(t, f.set(), opts); p.Err() != nil || p.Accident == nil {
				t.Errorf("a plan that agrees: %v, %v", p.Err(), p.Accident)
			}
			if out := mustApply(t, f.set(), opts); out.Did(goes) != apply.Pruned || f.isThere(goes) {
				t.Errorf("agreed to: %+v", out.Objects)
			}
			opts.AllowPrune = false
			if out := mustApply(t, f.set(), opts); out.Changed() != 0 {
				t.Errorf("the next run: %+v", out.Objects)
			}
		})
	}
}

// holdsAll checks that a text holds each of the others.
func holdsAll(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("got %q\nwant in it %q", text, want)
		}
	}
}

func (f *manifestFolder) patchInventory(body string) {
	f.t.Helper()
	maps := typed(f.t).CoreV1().ConfigMaps(f.ns)
	_, err := maps.Patch(f.t.Context(), apply.InventoryName("app"), types.MergePatchType, []byte(body), metav1.PatchOptions{})
	f.must(err)
}

// What somebody does on purpose is done without a question.
func TestAPruneThatIsMeantIsNotQuestioned(t *testing.T) {
	t.Parallel()
	web := folderFiles{"ns.yaml": itsNamespace, "keep.yaml": manifest("keep"), "web.yaml": manifest("web")}
	for _, tt := range []struct {
		name   string
		before folderFiles
		change folderChange
		goes   []string
	}{
		{"a file is removed", web, removes("web.yaml"), []string{"web"}},
		{"a document is removed", folderFiles{"all.yaml": manifest("keep") + "---\n" + manifest("web")},
			writes(folderFiles{"all.yaml": manifest("keep")}), []string{"web"}},
		{"a folder that was never read",
			folderFiles{
				"keep.yaml": manifest("keep"), "web.yaml": manifest("web"),
				"examples/web.yaml": manifest("web"), "old.yaml.bak": manifest("old"),
			},
			removes("web.yaml"), []string{"web"}},
		{"all but the namespace", folderFiles{"ns.yaml": itsNamespace, "web.yaml": manifests("web", 4)},
			removes("web.yaml"), []string{"web-0", "web-3"}},
		{"a file of another name", web, inTurn(moves("keep.yaml", "kept.yaml"), removes("web.yaml")), []string{"web"}},
		{"a new object in the same file", folderFiles{"web.yaml": manifest("web")},
			writes(folderFiles{"web.yaml": manifest("web-2")}), []string{"web"}},
		{"a note that is no manifest comes, and a sample of another kind", web,
			inTurn(removes("web.yaml"), writes(folderFiles{
				"README.md":        "```yaml\n" + manifest("web") + "```\n",
				"docs/sample.yaml": strings.ReplaceAll(itsDeployment, "web", "sample"),
			})), []string{"web"}},
		{"a resource and its file",
			folderFiles{"kustomization.yaml": "resources: [keep.yaml, web.yaml]", "keep.yaml": manifest("keep"), "web.yaml": manifest("web")},
			inTurn(writes(folderFiles{"kustomization.yaml": "resources: [keep.yaml]"}), removes("web.yaml")), []string{"web"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newManifestFolder(t, tt.before)
			opts := apply.Options{Prune: true}
			mustApply(t, f.set(), opts)
			tt.change(f)
			if p := mustPlan(t, f.set(), opts); p.Accident != nil || p.Err() != nil {
				t.Errorf("the plan: %v", p.Err())
			}
			out := mustApply(t, f.set(), opts)
			for _, name := range tt.goes {
				if ref := configMap(f.ns, name); out.Did(ref) != apply.Pruned || f.isThere(ref) {
					t.Errorf("%s is not pruned: %+v", name, out.Objects)
				}
			}
		})
	}
}

// A set that was not read from files is held back by nothing.
func TestAPruneOfASetOfObjectsIsNotQuestioned(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	opts := apply.Options{Prune: true}
	mustApply(t, mapsSet(t, ns, "a", "b", "c"), opts)
	if out := mustApply(t, mapsSet(t, ns, "d"), opts); out.Count(apply.Pruned) != 3 {
		t.Errorf("got %+v", out.Objects)
	}
}

// The question is put once, before the first write, and a "no" changes nothing; a plan that is applied asks as well.
func TestAPruneThatLooksLikeAnAccidentIsAskedAbout(t *testing.T) {
	t.Parallel()
	f := newManifestFolder(t, folderFiles{"keep.yaml": manifest("keep"), "web.yaml": manifest("web")})
	mustApply(t, f.set(), apply.Options{Prune: true})
	f.move("web.yaml", "web.txt")
	f.write(folderFiles{"new.yaml": manifest("new")})
	version, asked, answer := f.inventory(), 0, false
	opts := apply.Options{Prune: true, ConfirmPrune: func(_ context.Context, e *apply.AccidentError) (bool, error) {
		asked++
		if f.isThere(configMap(f.ns, "new")) {
			t.Error("it was asked after the first write")
		}
		holdsAll(t, e.Question(), "web.txt: it looks like a manifest", "delete what left the set? [y/N] ")
		return answer, nil
	}}
	if out, err := apply.Apply(t.Context(), config(t), f.set(), opts); !errors.Is(err, apply.ErrPruneDeclined) || len(out.Objects) > 0 || asked != 1 {
		t.Errorf("declined: %v, %+v, asked %d times", err, out.Objects, asked)
	}
	if !f.isThere(configMap(f.ns, "web")) || f.isThere(configMap(f.ns, "new")) || f.inventory() != version {
		t.Error("something was written")
	}
	dry := opts
	dry.DryRun = true
	if out := mustApply(t, f.set(), dry); out.Count(apply.Pruned) != 1 || asked != 1 {
		t.Errorf("a dry run: %+v, asked %d times", out.Objects, asked)
	}
	p := mustPlan(t, f.set(), opts)
	if p.Err() == nil || asked != 1 {
		t.Errorf("the plan: %v, asked %d times", p.Err(), asked)
	}
	if _, err := p.Apply(t.Context(), config(t)); !errors.Is(err, apply.ErrPruneDeclined) || asked != 2 {
		t.Errorf("the plan, declined: %v, asked %d times", err, asked)
	}
	answer = true
	if out, err := p.Apply(t.Context(), config(t)); err != nil || out.Did(configMap(f.ns, "web")) != apply.Pruned || asked != 3 {
		t.Errorf("the plan, agreed to: %v, %+v, asked %d times", err, out.Objects, asked)
	}
}

// What was read is kept without a write of its own, and in bounds.
func TestTheReadingInTheInventory(t *testing.T) {
	t.Parallel()
	f := newManifestFolder(t, folderFiles{"keep.yaml": manifest("keep"), "apps/web.yaml": manifest("web")})
	opts := apply.Options{Prune: true}
	mustApply(t, f.set(), opts)
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			t.Errorf("an equal set: %s %s", r.Method, r.URL)
		}
		return next.RoundTrip(r)
	})
	if _, err := apply.Apply(t.Context(), cfg, f.set(), opts); err != nil {
		t.Fatal(err)
	}
	reading := func() string {
		m, err := typed(t).CoreV1().ConfigMaps(f.ns).Get(t.Context(), apply.InventoryName("app"), metav1.GetOptions{})
		f.must(err)
		return m.Data["reading.json"]
	}
	if text := reading(); !strings.Contains(text, `"read":{"keep.yaml":1}`) || !strings.Contains(text, `"unread":{"apps/web.yaml":"`) {
		t.Errorf("got %s", text)
	}
	for i := range 700 {
		f.write(folderFiles{fmt.Sprintf("apps/%s-%d.yaml", strings.Repeat("long", 25), i): manifest("web")})
	}
	mustApply(t, f.set(), opts)
	if text := reading(); text != `{"version":1,"places":[{"read":{"keep.yaml":1},"cut":true}]}` {
		t.Errorf("too many: got %.300s", text)
	}
}
