package images

import (
	"context"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"jr2.dev/jr2/platforms"
)

// found is an image as a registry holds it.
type found struct {
	ref    string
	digest string
	images []foundImage
}

// foundImage is one image of a manifest list, or the only image.
type foundImage struct {
	claimed string // the platform of its descriptor; the config's own when there is no list
	own     string // the platform of its config
	user    string
	labels  map[string]string
}

// inspect reads the manifest, or the manifest list, of ref and the config of each image in it. Attestations are no images and
// are not read. Errors are *RegistryError.
func (r *Registry) inspect(ctx context.Context, ref name.Reference) (*found, error) {
	desc, err := remote.Get(ref, r.options(ctx)...)
	if err != nil {
		return nil, registryError(ref, err)
	}
	out := &found{ref: ref.String(), digest: desc.Digest.String()}
	if !desc.MediaType.IsIndex() {
		image, err := desc.Image()
		if err != nil {
			return nil, registryError(ref, err)
		}
		one, err := readImage(image)
		if err != nil {
			return nil, registryError(ref, err)
		}
		one.claimed = one.own
		out.images = append(out.images, one)
		return out, nil
	}
	index, err := desc.ImageIndex()
	if err != nil {
		return nil, registryError(ref, err)
	}
	if out.images, err = readIndex(index); err != nil {
		return nil, registryError(ref, err)
	}
	return out, nil
}

func readIndex(index v1.ImageIndex) ([]foundImage, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var out []foundImage
	for _, entry := range manifest.Manifests {
		claimed := platforms.FromIndex(&v1.IndexManifest{Manifests: []v1.Descriptor{entry}})
		if len(claimed) == 0 { // an attestation, or something else that is no image
			continue
		}
		image, err := index.Image(entry.Digest)
		if err != nil {
			return nil, err
		}
		one, err := readImage(image)
		if err != nil {
			return nil, err
		}
		one.claimed = claimed[0]
		out = append(out, one)
	}
	return out, nil
}

func readImage(image v1.Image) (foundImage, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return foundImage{}, err
	}
	return asFound(config), nil
}

// asFound is what counts of a configuration; claimed is left to who knows.
func asFound(config *v1.ConfigFile) foundImage {
	own := strings.Trim(config.OS+"/"+config.Architecture+"/"+config.Variant, "/")
	if normal, err := platforms.Normalize(own); err == nil {
		own = normal
	}
	return foundImage{own: own, user: config.Config.User, labels: config.Config.Labels}
}

// check says whether there is an image for each wanted platform and each is made for the platform that it claims.
func (f *found) check(want []string) error {
	var offered []string
	wrong := map[string]string{}
	for _, image := range f.images {
		offered = append(offered, image.claimed)
		if image.own != image.claimed {
			wrong[image.claimed] = image.own
		}
	}
	missing := platforms.Missing(want, offered)
	if len(missing) == 0 && len(wrong) == 0 {
		return nil
	}
	return &PlatformError{Ref: f.ref, Missing: missing, Wrong: wrong}
}

// user is the one USER of all images, or a *UserError.
func (f *found) user() (string, error) {
	users := map[string]string{}
	for _, image := range f.images {
		users[image.claimed] = image.user
	}
	return oneUser(f.ref, users)
}

func oneUser(ref string, users map[string]string) (string, error) {
	var all []string
	for _, user := range users {
		all = append(all, user)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 1 {
		return "", &UserError{Ref: ref, Users: users}
	}
	if len(all) == 0 {
		return "", nil
	}
	return all[0], nil
}

// labelled says whether every image was made by a converge of the instance.
func (f *found) labelled(instance string) bool {
	for _, image := range f.images {
		if image.labels[LabelKind] != KindSandbox || image.labels[LabelInstance] != instance {
			return false
		}
	}
	return len(f.images) > 0
}
