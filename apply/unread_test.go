package apply_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jr2.dev/jr2/apply"
)

// manifest is a ConfigMap in block style, whose keys stand at the left.
func manifest(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: NS\n"
}

// unreadOf reads a directory and returns the paths of what is not read, without the directory.
func unreadOf(t *testing.T, dir string, from apply.Source) []string {
	t.Helper()
	s, err := apply.Read("s", "ns", from)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, u := range s.Unread() {
		paths = append(paths, strings.TrimPrefix(u.Path, dir+"/")+": "+u.Why)
	}
	return paths
}

func TestUnreadTellsManifestsThatAreNotRead(t *testing.T) {
	const (
		extension = "only *.yaml, *.yml and *.json are read, in small letters"
		folder    = "sub-folders are not read"
		kustomize = "no kustomization names it"
	)
	plain := manifest("x")
	for _, tt := range []struct{ name, file, text, want string }{
		{"in a folder", "apps/web.yaml", plain, folder},
		{"two folders down", "apps/all/web.yaml", plain, folder},
		{"an extension in capitals", "web.YAML", plain, extension},
		{"an extension in mixed letters", "web.Yml", plain, extension},
		{"a backup", "web.yaml.bak", plain, extension},
		{"no extension", "web", plain, extension},
		{"text", "web.txt", "# comment\n---\n" + plain, extension},
		{"a byte order mark", "web.txt", "\ufeff" + plain, extension},
		{"lines of another system", "web.txt", strings.ReplaceAll(plain, "\n", "\r\n"), extension},
		{"a name with a dot", ".web.yaml", plain, "names that begin with a dot are not read"},
		{"JSON", "web.json5", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}`, extension},
		{"in braces", "web.txt", "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", extension},
		{"the second document", "web.txt", "a: b\n---\n" + plain, extension},
		{"a template", "web.yaml.tpl", "{{- if .Values.web }}\n" + plain + "{{- end }}\n", extension},
		{"keys in quotes", "web.txt", "\"apiVersion\": v1\n'kind': ConfigMap\nmetadata: {name: x}", extension},
		{"prose", "README", "Apply this:\n\n" + plain, ""},
		{"Markdown", "README.md", "# Web\n\n```yaml\n" + plain + "```\n", ""},
		{"a script", "up.sh", "#!/bin/sh\nkubectl apply -f - <<EOF\n" + plain + "EOF\n", ""},
		{"a program", "web.go", "package web\n\nconst web = `\n" + plain + "`\n", ""},
		{"an ignored folder", ".git/web.yaml", plain, ""},
		{"packages of a program", "node_modules/web.yaml", plain, ""},
		{"keys further down", "values.txt", "web:\n  apiVersion: v1\n  kind: ConfigMap\n", ""},
		{"JSON with the keys further down", "values.jsn", `{"web": {"apiVersion": "v1", "kind": "ConfigMap"}}`, ""},
		{"keys of two documents", "web.txt", "apiVersion: v1\n---\nkind: ConfigMap\n", ""},
		{"what kustomize alone reads", "base/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n", ""},
		{"no text", "web.bin", plain + "\x00", ""},
	} {
		dir := tree(t, map[string]string{"read.yaml": manifest("read"), tt.file: tt.text})
		var want, named []string
		if tt.want != "" {
			want, named = []string{tt.file + ": " + tt.want}, []string{tt.file + ": " + kustomize}
		}
		if got := unreadOf(t, dir, apply.Directory(dir)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, want)
		}
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [read.yaml]"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := unreadOf(t, dir, apply.Directory(dir)); !slices.Equal(got, named) {
			t.Errorf("%s, in a kustomization: got %q, want %q", tt.name, got, named)
		}
	}
	if s := set(t, "ns", plain); len(s.Unread()) > 0 {
		t.Errorf("a set of objects: %v", s.Unread())
	}
}

// What a kustomization refers to is read, in its bases too; what lies beside it there is not.
func TestUnreadOfAKustomizationLooksIntoItsBases(t *testing.T) {
	dir := layered(t, "transformers: [label.yaml]")
	for _, file := range []string{"base/left.yaml", "prod/more/left.yaml", "elsewhere/left.yaml"} {
		at := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(manifest("left")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := unreadOf(t, dir, apply.Kustomization(dir, "prod"))
	if want := []string{"base/left.yaml: no kustomization names it", "prod/more/left.yaml: no kustomization names it"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// No folder, whoever made it, has the look wait, leave the root or read without end.
func TestUnreadIsBoundedInHostileFolders(t *testing.T) {
	outside := tree(t, map[string]string{"secret.txt": manifest("secret")})
	deep := strings.Repeat("d/", 20)
	dir := tree(t, map[string]string{
		"read.yaml": manifest("read"), "sub/found.yaml": manifest("found"), deep + "web.yaml": manifest("deep"), "behind": manifest("behind"),
	})
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o600),
		syscall.Mkfifo(filepath.Join(dir, "sub", "pipe"), 0o600),
		os.Symlink("/dev/zero", filepath.Join(dir, "zero.txt")),
		os.Symlink("/dev", filepath.Join(dir, "devices")),
		os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(dir, "out.txt")),
		os.Symlink(outside, filepath.Join(dir, "outside")),
		os.Symlink(".", filepath.Join(dir, "sub", "again")),
		os.Symlink("behind", filepath.Join(dir, "link.yaml")), // read, and so is what it leads to
		os.WriteFile(filepath.Join(dir, "large.txt"), []byte(manifest("large")), 0o600),
		os.Truncate(filepath.Join(dir, "large.txt"), 1<<40),
		os.WriteFile(filepath.Join(dir, "odd\x1b[31m\n.txt"), []byte(manifest("odd")), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := unreadOf(t, dir, apply.Directory(dir))
	odd := `odd\x1b[31m\n.txt": only *.yaml, *.yml and *.json are read, in small letters`
	if len(got) != 2 || !strings.HasSuffix(got[0], odd) || got[1] != "sub/found.yaml: sub-folders are not read" {
		t.Errorf("got %q", got)
	}

	many := map[string]string{"read.yaml": manifest("read"), "z/late.yaml": manifest("late")}
	for i := range 5100 {
		many[fmt.Sprintf("a/%d", i)] = ""
	}
	dir = tree(t, many)
	if got := unreadOf(t, dir, apply.Directory(dir)); len(got) > 0 {
		t.Errorf("more than is looked at: %q", got)
	}
}
