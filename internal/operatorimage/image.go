package operatorimage

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// Path is where the binary is in the image.
	Path = "/manager"
	// User is as whom it runs: a number, and not root's, because the pod asks for runAsNonRoot and the kubelet looks at the image then.
	User = "65532:65532"
)

// Append puts the binary, a static executable for linux on that architecture, as one more layer upon base; nil stands for an image without
// anything. Equal input gives an equal digest: the layer holds no time.
func Append(base v1.Image, binary []byte, arch string) (v1.Image, error) {
	if base == nil {
		base = mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	}
	content, err := archive(binary)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "operatorimage", Comment: Path}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Entrypoint, config.Config.Cmd, config.Config.User = []string{Path}, nil, User
	return mutate.ConfigFile(image, config)
}

// archive is a tar of the binary alone.
func archive(binary []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	header := &tar.Header{Name: Path[1:], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(binary)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

// Index lists the images of several architectures as one, in the order of their names.
func Index(images map[string]v1.Image) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(images)) {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: images[arch], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index
}

// Push makes the image of the binaries, by architecture, each upon nothing, and pushes it under ref. It returns the digest of the list.
func Push(ctx context.Context, ref name.Reference, binaries map[string][]byte, options ...remote.Option) (v1.Hash, error) {
	images := map[string]v1.Image{}
	for arch, binary := range binaries {
		image, err := Append(nil, binary, arch)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("image for %s: %w", arch, err)
		}
		images[arch] = image
	}
	index := Index(images)
	if err := remote.WriteIndex(ref, index, append(slices.Clone(options), remote.WithContext(ctx))...); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", ref, err)
	}
	return index.Digest()
}
