package operatorimage_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/operatorimage"
	"jr2.dev/jr2/internal/render"
)

// TestPush: what a node pulls for its architecture is the binary for it, where the Deployment looks for it.
func TestPush(t *testing.T) {
	t.Parallel()
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	ref, err := registry.Reference("kit/jr2-operator:0.3.0")
	if err != nil {
		t.Fatal(err)
	}
	binaries := map[string][]byte{"amd64": []byte("one"), "arm64": []byte("two")}
	digest, err := operatorimage.Push(t.Context(), ref, binaries, registry.RemoteOptions(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := operatorimage.Push(t.Context(), ref, binaries, registry.RemoteOptions(t.Context())...); err != nil || again != digest {
		t.Errorf("pushed again it is %s, %v", again, err)
	}
	for arch, binary := range binaries {
		platform := remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch})
		image, err := remote.Image(ref, append(registry.RemoteOptions(t.Context()), platform)...)
		if err != nil {
			t.Fatal(err)
		}
		files := contents(t, image)
		if len(files) != 1 || !bytes.Equal(files["manager"], binary) {
			t.Errorf("%s: %v", arch, files)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch || config.OS != "linux" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) {
			t.Errorf("%s: %+v", arch, config)
		}
	}
}

// contents are the files of an image; all must be executable by anybody.
func contents(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(stream); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode&0o111 == 0o111 {
			files[header.Name] = content
		}
	}
}

// TestAppend keeps what the base has below the binary.
func TestAppend(t *testing.T) {
	t.Parallel()
	base, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err := operatorimage.Append(base, []byte("one"), "arm64")
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 3 {
		t.Errorf("%d layers, %v", len(layers), err)
	}
}

// TestDeploymentRunsIt: the operator's Deployment starts what is in the image.
func TestDeploymentRunsIt(t *testing.T) {
	t.Parallel()
	objects, err := render.Operator(render.Input{Instance: &config.Instance{Name: "my-instance"}})
	if err != nil {
		t.Fatal(err)
	}
	deployment, ok := objects[len(objects)-1].(*appsv1.Deployment)
	if !ok || deployment.Spec.Template.Spec.Containers[0].Command[0] != operatorimage.Path {
		t.Errorf("%+v", objects[len(objects)-1])
	}
}

// TestCompile: the executable needs no libraries, so it runs in an image without anything.
func TestCompile(t *testing.T) {
	t.Parallel()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		binary, err := operatorimage.Compile(t.Context(), "jr2.dev/jr2/internal/operatorimage/testdata/hello", arch)
		if err != nil {
			t.Fatal(err)
		}
		file, err := elf.NewFile(bytes.NewReader(binary))
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := file.ImportedLibraries()
		if file.Machine != machine || len(libraries) > 0 || err != nil {
			t.Errorf("%s: %s, %v, %v", arch, file.Machine, libraries, err)
		}
	}
	if _, err := operatorimage.Compile(t.Context(), "jr2.dev/jr2/absent", "amd64"); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("got %v", err)
	}
}
