package controller_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jr2.dev/jr2/internal/devcluster"
)

// The images that a real node is given: the Kit's Harness with a USER, a Custodian, and what a converge builds of a folder without a USER.
const (
	kitImage       = "localhost/jr2-harness:1"
	custodianImage = "localhost/envoy:1"
	builtImage     = "localhost/jr2-sandbox:1"
)

// runtimeText is the main program of the Kit's image, which only its image volume brings into a Sandbox.
const runtimeText = "// the runtime of the Kit's image\n"

// kitUser is the USER that the Kit's image declares.
const kitUser = 1001

// A file goes into an image.
type file struct {
	mode int64
	user int
	text string
	dir  bool
}

// script is a program of an image in shell.
func script(body string) file {
	return file{mode: 0o755, text: "#!/bin/sh\nset -e\n" + body + "\n"}
}

// realImages are built from busybox and testdata/realstandin: what stands for node, tini, ripgrep, git and Envoy.
func realImages(t *testing.T) map[string]v1.Image {
	t.Helper()
	busybox, err := devcluster.BusyboxImage(goruntime.GOARCH)
	if err != nil {
		devcluster.Missing(t, err.Error())
	}
	standIn := file{mode: 0o755, text: standInProgram(t)}
	git := script(`[ "$1 $2" = "config --global" ]; echo "$3=$4" >>"$HOME/.gitconfig"`)
	kit := withFiles(t, busybox, map[string]file{
		"bin/git":          git,
		"home/kit/":        {mode: 0o755, user: kitUser, dir: true},
		"opt/jr2/bin/node": standIn,
		"opt/jr2/bin/rg":   script("echo ripgrep"),
		"opt/jr2/bin/tini": script(`[ "$1" = -- ]; shift; exec "$@"`),
		"opt/jr2/main.js":  {mode: 0o644, text: runtimeText},
	}, v1.Config{User: fmt.Sprint(kitUser), Env: []string{"PATH=/bin", "HOME=/home/kit"}})
	custodian := withFiles(t, mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		map[string]file{"envoy": standIn}, v1.Config{User: "65532:65532", Entrypoint: []string{"/envoy"}})
	built := withFiles(t, busybox, map[string]file{"bin/git": git}, v1.Config{Env: []string{"PATH=/bin"}})
	return map[string]v1.Image{kitImage: kit, custodianImage: custodian, builtImage: built}
}

func standInProgram(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "standin")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", binary, "./testdata/realstandin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// withFiles is the image with one layer more.
func withFiles(t *testing.T, base v1.Image, files map[string]file, config v1.Config) v1.Image {
	t.Helper()
	var data bytes.Buffer
	archive := tar.NewWriter(&data)
	var errs []error
	for name, f := range files {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.text)), Uid: f.user, Gid: f.user}
		if f.dir {
			header.Typeflag = tar.TypeDir
		}
		errs = append(errs, archive.WriteHeader(header))
		_, err := io.WriteString(archive, f.text)
		errs = append(errs, err)
	}
	errs = append(errs, archive.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		t.Fatal(err)
	}
	found, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	found = found.DeepCopy()
	found.OS, found.Architecture, found.Config = "linux", goruntime.GOARCH, config
	if image, err = mutate.ConfigFile(image, found); err != nil {
		t.Fatal(err)
	}
	return image
}
