package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// testIgnoreFile holds what we say is sent to what BuildKit put into the image.
func testIgnoreFile(t *testing.T, b *bench) {
	for _, c := range ignoreCases() {
		d := b.decide(t, "ignoring", c.files(), "linux/amd64")
		got, _, err := b.deliver(t, b.builder, d, b.options(nil))
		must(t, err)
		if in := sortedKeys(b.content(t, got["default"])); !slices.Equal(in, c.sent) {
			t.Errorf("%s: BuildKit took %q\nwant %q", c.name, in, c.sent)
		}
	}
}

// testOddEntries: what counts for the digest is what an image keeps.
func testOddEntries(t *testing.T, b *bench) {
	dir := folder(t, "odd", map[string]string{"Dockerfile": "FROM scratch\nCOPY . /\n", "run": "#!", "private/key": "k", ".dockerignore": "hidden\n", "hidden/x": ""})
	must(t, os.Chmod(filepath.Join(dir, "run"), 0o755|fs.ModeSetuid))
	must(t, os.Chmod(filepath.Join(dir, "private"), 0o710|fs.ModeSetgid|fs.ModeSticky))
	must(t, os.Symlink("run", filepath.Join(dir, "link")))
	must(t, os.Symlink("/etc/hostname", filepath.Join(dir, "outside")))
	must(t, os.Link(filepath.Join(dir, "run"), filepath.Join(dir, "second")))
	must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	d, err := images.Plan(t.Context(), b.request(dir, "linux/amd64"))
	must(t, err)
	got, _, err := b.deliver(t, b.builder, d, b.options(nil))
	must(t, err)
	in := b.content(t, got["default"])
	want := map[string]string{
		".dockerignore": "-rw-r--r--", "Dockerfile": "-rw-r--r--", "run": "urwxr-xr-x", "second": "urwxr-xr-x", "private": "dgtrwx--x---",
		"private/key": "-rw-r--r--", "link": "Lrwxrwxrwx run", "outside": "Lrwxrwxrwx /etc/hostname", "empty": "drwxr-xr-x", "pipe": "prw-------",
	}
	for path, mode := range want {
		if in[path] != mode {
			t.Errorf("%s is %q in the image, want %q", path, in[path], mode)
		}
	}
	sent, err := images.Sent(t.Context(), dir)
	must(t, err)
	if !slices.Equal(sent, sortedKeys(in)) {
		t.Errorf("we say %q, the image holds %q", sent, sortedKeys(in))
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// content is what the layers of an image hold: the mode of each path, and a link's target.
func (b *bench) content(t *testing.T, one images.Delivered) map[string]string {
	t.Helper()
	ref, err := b.registry.Reference(strings.TrimPrefix(one.Ref, b.registry.Host+"/"))
	must(t, err)
	image, err := remote.Image(ref, b.registry.RemoteOptions(t.Context())...)
	must(t, err)
	layers, err := image.Layers()
	must(t, err)
	content := map[string]string{}
	for _, layer := range layers {
		stream, err := layer.Uncompressed()
		must(t, err)
		for r := tar.NewReader(stream); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			mode := header.FileInfo().Mode()
			text := mode.String()
			if mode&fs.ModeSymlink != 0 {
				text += " " + header.Linkname
			}
			content[strings.TrimSuffix(header.Name, "/")] = text
		}
		must(t, stream.Close())
	}
	return content
}

// testF27Bases: stage names, in any case, and what ARG makes of them are BuildKit's to read; the registry is asked for bases alone.
func testF27Bases(t *testing.T, b *bench) {
	for _, text := range []string{
		"ARG BASE=$host/base/run:3.20\nFROM --platform=$BUILDPLATFORM $host/base/tools:1.23 AS Build\nRUN echo x > /x\n" +
			"FROM ${BASE} AS run-amd64\nFROM ${BASE} AS run-arm64\nFROM run-${TARGETARCH}\nCOPY --from=build /x /x\n",
		"arg BASE=$host/base/run:3.20\nfrom \\\n  --platform=$BUILDPLATFORM \\\n  $host/base/tools:1.23 as BUILD\nrun echo x \\\n  > /x\nfrom scratch as empty\nfrom ${BASE}\ncopy --from=Build /x /x\n",
		"# a comment\nFROM scratch AS scratched\nCOPY --from=$host/base/tools:1.23 /bin /bin\nFROM scratched\nCOPY --from=$host/base/run:3.20 /bin /other\n",
	} {
		asked := b.watch(t, func(*testing.T) {
			files := map[string]string{"Dockerfile": strings.ReplaceAll(text, "$host", b.registry.Host)}
			_, _, err := b.deliver(t, b.builder, b.decide(t, "bases", files, "linux/amd64"), b.options(nil))
			must(t, err)
		})
		if want := []string{"base/run", "base/tools", "team/jr2-sandbox-fx-bases"}; !slices.Equal(asked, want) {
			t.Errorf("the registry was asked for %q, want %q\n%s", asked, want, text)
		}
	}
}

// asked collects the repositories that a registry is asked for, and the tags that are written.
type asked struct {
	mu    sync.Mutex
	repos map[string]string
	tags  []string
}

func (a *asked) see(r *http.Request) {
	repo, at, manifest := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
	if !manifest {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, _, login := r.BasicAuth(); login && r.Method == http.MethodPut && !strings.HasPrefix(at, "sha256:") {
		a.tags = append(a.tags, repo+":"+at)
	}
	if a.repos != nil {
		a.repos[repo] = ""
	}
}

// written are the tags of a repository that were written, one for each time.
func (a *asked) written(repo string) (tags []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, tag := range a.tags {
		if strings.HasPrefix(tag, repo+":") {
			tags = append(tags, tag)
		}
	}
	return tags
}

func (b *bench) watch(t *testing.T, run func(*testing.T)) []string {
	b.asked.mu.Lock()
	b.asked.repos = map[string]string{}
	b.asked.mu.Unlock()
	run(t)
	b.asked.mu.Lock()
	defer b.asked.mu.Unlock()
	return sortedKeys(b.asked.repos)
}

// addBases gives the registry the bases of testF27Bases, each of its own content.
func (b *bench) addBases(t *testing.T) {
	t.Helper()
	image, err := devcluster.BusyboxImage("amd64")
	skipWithout(t, err, devcluster.ErrNoBusybox)
	for _, repo := range []string{"base/tools:1.23", "base/run:3.20"} {
		ref, err := b.registry.Reference(repo)
		must(t, err)
		must(t, remote.Write(ref, image, b.registry.RemoteOptions(t.Context())...))
	}
}
