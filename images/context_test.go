package images_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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

func TestContextDigestMovesWithWhatIsSent(t *testing.T) {
	files := func() map[string]string {
		return map[string]string{"Dockerfile": "FROM scratch\n", ".dockerignore": "secret\nhidden\n", "secret": "1", "hidden/deep/x": "2", "a.txt": "x", "a/b": "y", "a-b": "z"}
	}
	base := digestOf(t, folder(t, "one", files()))
	cases := []struct {
		name  string
		do    func(dir string)
		moves bool
	}{
		{"another directory name", func(string) {}, false},
		{"times", func(dir string) { must(t, os.Chtimes(filepath.Join(dir, "a.txt"), time.Unix(1, 0), time.Unix(1, 0))) }, false},
		{"a second name of the same file", func(dir string) {
			must(t, os.Remove(filepath.Join(dir, "a-b")))
			write(t, filepath.Join(dir, "secret"), "z")
			must(t, os.Link(filepath.Join(dir, "secret"), filepath.Join(dir, "a-b")))
		}, false},
		{"an ignored file", func(dir string) { write(t, filepath.Join(dir, "secret"), "2") }, false},
		{"an ignored directory", func(dir string) { must(t, os.RemoveAll(filepath.Join(dir, "hidden"))) }, false},
		{"a file in an ignored directory", func(dir string) { write(t, filepath.Join(dir, "hidden", "new"), "") }, false},
		{"mode of a file", func(dir string) { must(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o755)) }, true},
		{"mode of a directory", func(dir string) { must(t, os.Chmod(filepath.Join(dir, "a"), 0o700)) }, true},
		{"empty directory", func(dir string) { must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755)) }, true},
		{"symlink to a file", func(dir string) { must(t, os.Symlink("a.txt", filepath.Join(dir, "link"))) }, true},
		{"symlink to a directory", func(dir string) { must(t, os.Symlink("a", filepath.Join(dir, "linkdir"))) }, true},
		{"dangling symlink", func(dir string) { must(t, os.Symlink("nowhere", filepath.Join(dir, "link"))) }, true},
		{"named pipe", func(dir string) { must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644)) }, true},
		{"one byte", func(dir string) { write(t, filepath.Join(dir, "a.txt"), "X") }, true},
		{"the ignore file, which is sent itself", func(dir string) { write(t, filepath.Join(dir, ".dockerignore"), "secret\nhidden\n\n") }, true},
		{"a new empty file", func(dir string) { write(t, filepath.Join(dir, "a", "new"), "") }, true},
		{"a rename", func(dir string) { must(t, os.Rename(filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt"))) }, true},
		{"a removal", func(dir string) { must(t, os.Remove(filepath.Join(dir, "a-b"))) }, true},
		{"a large file", func(dir string) { write(t, filepath.Join(dir, "a.txt"), strings.Repeat("x", 2<<20)) }, true},
	}
	seen := map[string]string{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, "two", files())
			c.do(dir)
			got := digestOf(t, dir)
			if (got != base) != c.moves {
				t.Errorf("moved: %t, want %t (%s, %s)", got != base, c.moves, base, got)
			}
			if other := seen[got]; c.moves && other != "" {
				t.Errorf("the same digest as for %q", other)
			}
			seen[got] = c.name
		})
	}
}

// TestF27WhatIsSent: patterns count in their order, the Dockerfile's own ignore file goes before the folder's, and the Dockerfile counts
// also where it is left out. TestBuildKit holds the same list to what BuildKit put into an image.
func TestF27WhatIsSent(t *testing.T) {
	for _, c := range ignoreCases() {
		t.Run(c.name, func(t *testing.T) {
			got, err := images.Sent(t.Context(), folder(t, "ctx", c.files()))
			must(t, err)
			if !slices.Equal(got, c.sent) {
				t.Errorf("got %q\nwant %q", got, c.sent)
			}
		})
	}
	t.Run("an ignored Dockerfile", func(t *testing.T) {
		files := map[string]string{"Dockerfile": "FROM scratch\n", ".dockerignore": "Dockerfile\n.dockerignore\n", "a": "1"}
		base := digestOf(t, folder(t, "ctx", files))
		files["Dockerfile"] = "FROM scratch\nUSER 1\n"
		moved := digestOf(t, folder(t, "ctx", files))
		files["Dockerfile"], files[".dockerignore"] = "FROM scratch\n", ".dockerignore\n"
		if sent := digestOf(t, folder(t, "ctx", files)); base == moved || base == sent {
			t.Errorf("%s, %s with another Dockerfile, %s with the Dockerfile sent", base, moved, sent)
		}
	})
	t.Run("a Dockerfile behind a link", func(t *testing.T) {
		dir := folder(t, "ctx", map[string]string{"build/real": "FROM scratch\n", ".dockerignore": "build\n", "a": "1"})
		must(t, os.Symlink("build/real", filepath.Join(dir, "Dockerfile")))
		base := digestOf(t, dir)
		write(t, filepath.Join(dir, "build", "real"), "FROM scratch\nUSER 1\n")
		if digestOf(t, dir) == base {
			t.Error("what the builder reads does not count")
		}
	})
}

// An ignoreCase is a tree, its ignore files, and what a builder is sent of it.
type ignoreCase struct {
	name   string
	ignore map[string]string // name of the ignore file to its text
	sent   []string          // beside .dockerignore and the Dockerfile's own
}

func (c ignoreCase) files() map[string]string {
	files := map[string]string{"Dockerfile": "FROM scratch\nCOPY . /\n"}
	for _, path := range []string{"data/open", "data/secret", "data/deep/a.py", "data/deep/b.txt", "lib/c.py", "top.py", "top.txt"} {
		files[path] = path
	}
	for name, text := range c.ignore {
		files[name] = text
	}
	return files
}

func ignoreCases() []ignoreCase {
	return []ignoreCase{
		{"none", nil, []string{"Dockerfile", "data", "data/deep", "data/deep/a.py", "data/deep/b.txt", "data/open", "data/secret", "lib", "lib/c.py", "top.py", "top.txt"}},
		{"all but one folder, less one file", map[string]string{".dockerignore": "*\n!data\ndata/secret\n"},
			[]string{"data", "data/deep", "data/deep/a.py", "data/deep/b.txt", "data/open"}},
		{"the same lines in another order", map[string]string{".dockerignore": "*\ndata/secret\n!data\n"},
			[]string{"data", "data/deep", "data/deep/a.py", "data/deep/b.txt", "data/open", "data/secret"}},
		{"all but a kind of file", map[string]string{".dockerignore": "*\n!**/*.py\n"},
			[]string{"data", "data/deep", "data/deep/a.py", "lib", "lib/c.py", "top.py"}},
		{"comments, spaces, slashes", map[string]string{".dockerignore": "\xef\xbb\xbf# data\n  /data/ \n./lib/../lib\n\ntop.*\n!top.txt\nDockerfile\n.dockerignore\n"},
			[]string{"top.txt"}},
		{"the Dockerfile's own goes first", map[string]string{".dockerignore": "*\n", "Dockerfile.dockerignore": "data\nlib\n"},
			[]string{".dockerignore", "Dockerfile", "Dockerfile.dockerignore", "top.py", "top.txt"}},
		{"even an empty one", map[string]string{".dockerignore": "*\n!lib\n", "Dockerfile.dockerignore": ""},
			[]string{".dockerignore", "Dockerfile", "Dockerfile.dockerignore", "data", "data/deep", "data/deep/a.py", "data/deep/b.txt", "data/open", "data/secret", "lib", "lib/c.py", "top.py", "top.txt"}},
	}
}

func TestContextDigestOfABadIgnoreFile(t *testing.T) {
	for text, want := range map[string]string{"data\n[a-\n": `pattern "[a-"`, strings.Repeat("x", 1<<17): "token too long"} {
		dir := folder(t, "ctx", map[string]string{"Dockerfile": "FROM scratch\n", ".dockerignore": text})
		_, err := images.ContextDigest(t.Context(), dir)
		var failed *images.ContextError
		var ignore *images.IgnoreError
		if !errors.As(err, &failed) || !errors.As(err, &ignore) || ignore.File != ".dockerignore" || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}

func TestContextDigestIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	if _, err := images.ContextDigest(ctx, folder(t, "ctx", holdFiles())); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
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
