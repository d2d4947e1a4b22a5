package images

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	moby "github.com/moby/moby/client"
)

// A DockerStore is the Store of a Docker Engine. Close it.
type DockerStore struct {
	builder *BuildKit
}

// ConnectDocker finds the Docker Engine that the docker command would use, as Connect does. The error says which one does not answer.
func ConnectDocker(ctx context.Context, opts ConnectOptions) (*DockerStore, error) {
	builder, place, err := opts.dockerEngine(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", place, err)
	}
	builder.place = place
	return &DockerStore{builder: builder}, nil
}

// Place says which engine this is and why it is that one.
func (s *DockerStore) Place() Place { return s.builder.place }

// Close ends the connection.
func (s *DockerStore) Close() error { return s.builder.Close() }

// Built implements Store.
func (s *DockerStore) Built(ctx context.Context) ([]Stored, error) {
	list, err := s.builder.engine.api.ImageList(ctx, moby.ImageListOptions{Filters: moby.Filters{}.Add("label", LabelKind)})
	if err != nil {
		return nil, err
	}
	var out []Stored
	for _, image := range list.Items {
		stored := Stored{ID: image.ID, Bytes: image.Size}
		if name := image.Labels[LabelInstance]; name != "" {
			stored.Instances = []string{name}
		}
		for _, tag := range image.RepoTags {
			if tag != "<none>:<none>" {
				stored.Tags = append(stored.Tags, tag)
			}
		}
		for _, digest := range image.RepoDigests {
			if digest != "<none>@<none>" {
				stored.Digests = append(stored.Digests, digest)
			}
		}
		out = append(out, stored)
	}
	return out, nil
}

// Remove implements Store. An image that a container uses is left, with the engine's word as the error.
func (s *DockerStore) Remove(ctx context.Context, ref string) error {
	_, err := s.builder.engine.api.ImageRemove(ctx, ref, moby.ImageRemoveOptions{PruneChildren: true})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
