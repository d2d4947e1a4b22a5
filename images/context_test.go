package images_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
)

// folder writes files (slash-separated path → content) below a new directory with this name.
func folder(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		write(t, filepath.Join(dir, filepath.FromSlash(path)), content)
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func digestOf(t *testing.T, dir string) string {
	t.Helper()
	digest, err := images.ContextDigest(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// holdFiles and toolboxFiles are the image contexts of the example Instances, whose digests are known.
func holdFiles() map[string]string {
	return map[string]string{"Dockerfile": "FROM node:24-slim\nRUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates\n"}
}

func toolboxFiles() map[string]string {
	return map[string]string{
		"Dockerfile": "FROM debian:trixie-slim\nCOPY setup.sh /tmp/setup.sh\nRUN sh /tmp/setup.sh\nUSER 1200\n",
		"setup.sh":   "set -eu\napt-get update\napt-get install -y --no-install-recommends git ca-certificates make\n",
	}
}

func TestContextDigestKnown(t *testing.T) {
	for want, files := range map[string]map[string]string{"e13447d07c4d": holdFiles(), "8f7a27452d4e": toolboxFiles()} {
		if got := digestOf(t, folder(t, "default", files)); got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
	}
}

func TestContextDigestMovesWithContentAlone(t *testing.T) {
	files := func() map[string]string {
		return map[string]string{"Dockerfile": "FROM scratch\n", ".dockerignore": "secret\n", "secret": "1", "a.txt": "x", "a/b": "y", "a-b": "z"}
	}
	base := digestOf(t, folder(t, "one", files()))
	cases := []struct {
		name  string
		do    func(dir string)
		moves bool
	}{
		{"another directory name", func(string) {}, false},
		{"mode", func(dir string) { must(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o755)) }, false},
		{"empty directory", func(dir string) { must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755)) }, false},
		{"symlink to a file", func(dir string) { must(t, os.Symlink("a.txt", filepath.Join(dir, "link"))) }, false},
		{"symlink to a directory", func(dir string) { must(t, os.Symlink("a", filepath.Join(dir, "linkdir"))) }, false},
		{"dangling symlink", func(dir string) { must(t, os.Symlink("nowhere", filepath.Join(dir, "link"))) }, false},
		{"one byte", func(dir string) { write(t, filepath.Join(dir, "a.txt"), "X") }, true},
		{"an ignored file", func(dir string) { write(t, filepath.Join(dir, "secret"), "2") }, true},
		{"a new empty file", func(dir string) { write(t, filepath.Join(dir, "a", "new"), "") }, true},
		{"a rename", func(dir string) { must(t, os.Rename(filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt"))) }, true},
		{"a removal", func(dir string) { must(t, os.Remove(filepath.Join(dir, "a-b"))) }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, "two", files())
			c.do(dir)
			if got := digestOf(t, dir); (got != base) != c.moves {
				t.Errorf("moved: %t, want %t (%s, %s)", got != base, c.moves, base, got)
			}
		})
	}
}

func TestContextDigestThroughSymlinkedRoot(t *testing.T) {
	dir := folder(t, "real", holdFiles())
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	if got := digestOf(t, link); got != "e13447d07c4d" {
		t.Errorf("digest %s", got)
	}
}

func TestContextDigestUnreadable(t *testing.T) {
	file := filepath.Join(folder(t, "x", map[string]string{"f": ""}), "f")
	for _, dir := range []string{filepath.Join(t.TempDir(), "missing"), file} {
		_, err := images.ContextDigest(t.Context(), dir)
		var failed *images.ContextError
		if !errors.As(err, &failed) || failed.Dir != dir || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	locked := folder(t, "locked", map[string]string{"sub/f": "x"})
	must(t, os.Chmod(filepath.Join(locked, "sub"), 0))
	t.Cleanup(func() { os.Chmod(filepath.Join(locked, "sub"), 0o755) }) //nolint:errcheck // best effort, so that the directory can be removed
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	if _, err := images.ContextDigest(t.Context(), locked); err == nil || !strings.Contains(err.Error(), locked) {
		t.Errorf("unreadable folder: %v", err)
	}
}

func TestContextFolder(t *testing.T) {
	cases := []struct{ url, dir, name, err string }{
		{url: "file:///srv/inst/workflows/toolbox", dir: "/srv/inst/workflows/toolbox", name: "toolbox"},
		{url: "file:///srv/inst/workflows/toolbox/", dir: "/srv/inst/workflows/toolbox", name: "toolbox"},
		{url: "file://localhost/srv/a", dir: "/srv/a", name: "a"},
		{url: "file:///srv/my%20inst/%C3%A4%23b", dir: "/srv/my inst/ä#b", name: "ä#b"},
		{url: "file:///srv/a/../b", dir: "/srv/b", name: "b"},
		{url: "file:///srv/100%25", dir: "/srv/100%", name: "100%"},
		{url: "registry.example.com/team/ide:1.4", err: "not a file: URL"},
		{url: "file://server/srv/a", err: "names the host server"},
		{url: "file:///", err: "root of the file system"},
		{url: "file:relative", err: "absolute path"},
		{url: "file:///a?b", err: "query"},
		{url: "file:///a%00b", err: "absolute path"},
		{url: "file:///a%zz", err: "not a URL"},
	}
	for _, c := range cases {
		dir, name, err := images.ContextFolder(c.url)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.url, err, c.err)
			}
			continue
		}
		if err != nil || dir != c.dir || name != c.name {
			t.Errorf("%s: %q %q %v", c.url, dir, name, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
