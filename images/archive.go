package images

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moby/buildkit/client"

	"jr2.dev/jr2/platforms"
)

// An Archiver is a Builder that can also hand out an image instead of pushing it. BuildKit is one.
type Archiver interface {
	// Archive builds as Build does, for one platform, and writes the image under the name req.Ref to w, as a tar archive: an OCI image
	// layout, or what docker save writes. A failed build is a *BuildError.
	Archive(ctx context.Context, req BuildRequest, w io.Writer) error
}

// Archive implements Archiver. The same inputs give the image that Build pushes, with its digest; a Docker Engine that keeps images in its own
// store gives the image uncompressed, and keeps a copy. Several platforms are a *platforms.NeedsRegistryError.
func (b *BuildKit) Archive(ctx context.Context, req BuildRequest, w io.Writer) error {
	if len(req.Platforms) != 1 {
		return &platforms.NeedsRegistryError{Platforms: sorted(req.Platforms)}
	}
	if b.engine != nil && b.engine.classic {
		return b.engine.archive(ctx, b, req, w)
	}
	_, err := b.solve(ctx, req, client.ExportEntry{
		Type:   client.ExporterOCI,
		Attrs:  map[string]string{"name": req.Ref, "oci-mediatypes": "true", "rewrite-timestamp": "true"},
		Output: func(map[string]string) (io.WriteCloser, error) { return unclosed{w}, nil },
	})
	return asArchive(err)
}

// archive builds into the engine's own store, whose BuildKit hands out nothing, and saves the image from there.
func (e *engine) archive(ctx context.Context, b *BuildKit, req BuildRequest, w io.Writer) error {
	_, err := b.solve(ctx, req, client.ExportEntry{Type: mobyExporter, Attrs: map[string]string{"name": req.Ref}})
	if err != nil {
		return asArchive(err)
	}
	stream, err := e.api.ImageSave(ctx, []string{req.Ref})
	if err == nil {
		_, err = io.Copy(w, stream)
		stream.Close() //nolint:errcheck // it was only read
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return asArchive(&PushError{Name: req.Name, Ref: req.Ref, Err: err})
	}
	return nil
}

// asArchive says of what failed after the build that it is no push.
func asArchive(err error) error {
	var push *PushError
	if errors.As(err, &push) {
		return fmt.Errorf("sandbox image %q was built and the builder cannot hand it out: %w", push.Name, push.Err)
	}
	return err
}

// unclosed leaves the writer open for its owner.
type unclosed struct{ io.Writer }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }
