package images

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/exporter/containerimage/exptypes"
)

// mobyExporter brings a result into the engine's own store of images.
const mobyExporter = "moby"

// build builds for one platform after the other, because the engine's own store holds images and no lists of them; then fetches the images
// from the store and pushes them from here. The layers are compressed here too, so the digest is not the one that another builder gives.
func (e *engine) build(ctx context.Context, b *BuildKit, req BuildRequest) (BuildResult, error) {
	var ids []string
	var built []Built
	for _, platform := range req.Platforms {
		one := req
		one.Platforms = []string{platform}
		one.BeforePush = func(_ context.Context, images []Built) error {
			built = append(built, images...)
			return nil
		}
		export := map[string]string{}
		if len(req.Platforms) == 1 && !req.ByDigest {
			export["name"] = req.Ref
		}
		response, err := b.solve(ctx, one, client.ExportEntry{Type: mobyExporter, Attrs: export})
		if err != nil {
			return BuildResult{}, err
		}
		ids = append(ids, response.ExporterResponse[exptypes.ExporterImageDigestKey])
	}
	if req.BeforePush != nil {
		if err := req.BeforePush(ctx, built); err != nil {
			return BuildResult{}, err
		}
	}
	digest, err := e.send(ctx, req, ids)
	if ctx.Err() != nil {
		return BuildResult{}, context.Cause(ctx)
	}
	if err != nil {
		return BuildResult{}, err
	}
	return BuildResult{Digest: digest, Users: users(built)}, nil
}

// send brings the images with these ids from the engine to the registry, and says what the ref names then.
func (e *engine) send(ctx context.Context, req BuildRequest, ids []string) (digest string, err error) {
	failed := func(err error) error { return &PushError{Name: req.Name, Ref: req.Ref, Err: err} }
	var images []v1.Image
	for _, id := range ids {
		image, remove, err := e.fetch(ctx, id)
		if err != nil {
			return "", failed(fmt.Errorf("fetch %s from Docker Engine: %w", id, err))
		}
		defer remove()
		images = append(images, image)
	}
	if err := e.checkBases(req, images); err != nil {
		return "", err
	}
	if digest, err = push(ctx, req, images); err != nil {
		return "", failed(err)
	}
	return digest, nil
}

// push writes one image, or several as a list.
func push(ctx context.Context, req BuildRequest, images []v1.Image) (digest string, err error) {
	target, err := req.target()
	if err != nil {
		return "", err
	}
	if len(images) == 1 {
		return req.writeImage(ctx, target, images[0])
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, image := range images {
		platform, err := v1.ParsePlatform(req.Platforms[i])
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	hash, err := index.Digest()
	if err != nil {
		return "", err
	}
	return hash.String(), remote.WriteIndex(req.at(target, hash), index, req.remote(ctx)...)
}

func (req BuildRequest) writeImage(ctx context.Context, target name.Reference, image v1.Image) (string, error) {
	hash, err := image.Digest()
	if err != nil {
		return "", err
	}
	return hash.String(), remote.Write(req.at(target, hash), image, req.remote(ctx)...)
}

// at is where something with this digest is pushed.
func (req BuildRequest) at(target name.Reference, hash v1.Hash) name.Reference {
	if req.ByDigest {
		return target.Context().Digest(hash.String())
	}
	return target
}

// fetch copies an image out of the engine's store. remove deletes the copy, from which the image is read until then.
func (e *engine) fetch(ctx context.Context, id string) (image v1.Image, remove func(), err error) {
	file, err := os.CreateTemp("", "jr2-image-*.tar")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { os.Remove(file.Name()) } //nolint:errcheck // what stays is in the system's folder for that
	defer func() {
		if err != nil {
			remove()
		}
	}()
	stream, err := e.api.ImageSave(ctx, []string{id})
	if err != nil {
		file.Close() //nolint:errcheck // the first error counts
		return nil, nil, err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	_, err = io.Copy(file, stream)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, nil, err
	}
	saved, err := tarball.ImageFromPath(file.Name(), nil)
	if err != nil {
		return nil, nil, err
	}
	image, err = asOCI(saved)
	return image, remove, err
}

// asOCI gives an image that the engine saved OCI's media types.
func asOCI(saved v1.Image) (v1.Image, error) {
	layers, err := saved.Layers()
	if err != nil {
		return nil, err
	}
	addenda := make([]mutate.Addendum, len(layers))
	for i, layer := range layers {
		addenda[i] = mutate.Addendum{Layer: layer, MediaType: types.OCILayer}
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), addenda...)
	if err != nil {
		return nil, err
	}
	config, err := saved.ConfigFile()
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, config)
}
