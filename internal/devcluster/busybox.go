package devcluster

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jr2.dev/jr2/internal/devcluster/build"
)

// BusyboxEnv names the environment variable that says where the executables for BusyboxImage are: ARCH/busybox below it.
// Default: busybox in the cache of package build, where .ci/deps.sh puts them.
const BusyboxEnv = "JR2_BUSYBOX_DIR"

// ErrNoBusybox is the cause where there is no busybox of an architecture.
var ErrNoBusybox = errors.New("no statically linked busybox")

// applets are the commands of busybox that builds and pods of tests use.
const applets = "sh ash cat cp chmod chown date echo env false grep head id ls mkdir mv printf ps rm sed sleep sort tail test touch tr true uname wc"

// BusyboxImage is a small image with a shell to build from, for one architecture: nothing can be pulled where tests run.
func BusyboxImage(arch string) (v1.Image, error) {
	executable, err := busybox(arch)
	if err != nil {
		return nil, err
	}
	data, err := rootFS(executable)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Env = []string{"PATH=/bin"}
	config.Config.Cmd = []string{"sh"}
	return mutate.ConfigFile(image, config)
}

// BusyboxIndex is BusyboxImage for several architectures under one name.
func BusyboxIndex(archs ...string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range archs {
		image, err := BusyboxImage(arch)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, nil
}

// PushBusybox pushes BusyboxIndex under the name (repository:tag) and returns the whole reference.
func (r *Registry) PushBusybox(ctx context.Context, image string, archs ...string) (string, error) {
	ref, err := r.Reference(image)
	if err != nil {
		return "", err
	}
	index, err := BusyboxIndex(archs...)
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(ref, index, r.RemoteOptions(ctx)...); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	return ref.String(), nil
}

// busybox reads the executable.
func busybox(arch string) ([]byte, error) {
	dir := os.Getenv(BusyboxEnv)
	if dir == "" {
		root, err := (&build.Cache{}).Root()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, "busybox")
	}
	data, err := os.ReadFile(filepath.Join(dir, arch, "busybox"))
	if err != nil && arch == runtime.GOARCH {
		data, err = os.ReadFile("/bin/busybox")
	}
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w (.ci/deps.sh installs it, %s names another place)", ErrNoBusybox, arch, err, BusyboxEnv)
	}
	return data, nil
}

// rootFS is a root file system as a tar that is the same each time.
func rootFS(executable []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(header tar.Header, data string) error {
		header.Size = int64(len(data))
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := io.WriteString(w, data)
		return err
	}
	var errs []error
	for _, dir := range []string{"bin/", "etc/", "home/"} {
		errs = append(errs, add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, ""))
	}
	errs = append(errs,
		add(tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, ""),
		add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644},
			"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/sh\n"),
		add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/group", Mode: 0o644}, "root:x:0:\nnobody:x:65534:\n"),
		add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, string(executable)),
	)
	for _, applet := range strings.Fields(applets) {
		errs = append(errs, add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox", Mode: 0o777}, ""))
	}
	errs = append(errs, w.Close())
	return out.Bytes(), errors.Join(errs...)
}
