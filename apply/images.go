package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An ImageUse is one place of a set that names an image.
type ImageUse struct {
	Ref Ref
	// Path is the field: "spec.template.spec.initContainers[0].image".
	Path string
	// Image is the reference as it is written.
	Image string
}

// An ImageMapping says what the images of one name become, as an entry of kustomize's images field does: NewName in place of the name,
// NewTag or Digest, or both, in place of the tag and the digest that were there. What is left empty stays, and the zero mapping
// changes nothing.
type ImageMapping struct {
	NewName string `json:"newName,omitempty"`
	NewTag  string `json:"newTag,omitempty"`
	// Digest is "sha256:" and 64 hexadecimal digits.
	Digest string `json:"digest,omitempty"`
}

// An UnusedImagesError names the entries of an image map that no image of the set has. Often it is a misspelled name, and the image
// that was meant is not pinned.
type UnusedImagesError struct {
	Set   string   // its ID
	Names []string // sorted
}

func (e *UnusedImagesError) Error() string {
	return fmt.Sprintf("no image of the set %s has the name %s: correct the image map, or take the entry out", e.Set, strings.Join(e.Names, ", "))
}

// An ImageError says that an entry of an image map does not make an image reference.
type ImageError struct {
	Name string // the entry
	Err  error
}

func (e *ImageError) Error() string {
	return fmt.Sprintf("the image map's entry %q: %v", e.Name, e.Err)
}
func (e *ImageError) Unwrap() error { return e.Err }

// Images lists every place of the set that names an image, in the order of the objects: containers, init containers, ephemeral
// containers and image volumes, of every built-in kind that holds a pod.
func (s *Set) Images() []ImageUse {
	var uses []ImageUse
	for _, o := range s.Objects {
		eachImage(o, func(path string, holder map[string]any, field string) {
			image, _ := holder[field].(string)
			uses = append(uses, ImageUse{Ref: RefOf(o), Path: path, Image: image})
		})
	}
	return uses
}

// MapImages rewrites the images of the set in all places that Images lists. The keys are the names of images as the set writes them, without
// tag and digest ("registry.example.com/team/app"), compared whole; an image is mapped once, so a NewName is not looked up again.
//
// The error is an *ImageError for an entry that makes no valid reference, and then nothing was changed. It is an *UnusedImagesError for
// entries that match no image, and then all others were applied.
func (s *Set) MapImages(mappings map[string]ImageMapping) error {
	unused := map[string]bool{}
	for name := range mappings {
		unused[name] = true
	}
	type change struct {
		holder       map[string]any
		field, image string
	}
	var changes []change
	var failed error
	for _, o := range s.Objects {
		eachImage(o, func(_ string, holder map[string]any, field string) {
			image, _ := holder[field].(string)
			name, _, _ := splitImage(image)
			mapping, ok := mappings[name]
			if !ok || image == "" || failed != nil {
				return
			}
			delete(unused, name)
			mapped, err := mapping.apply(image)
			if err != nil {
				failed = &ImageError{Name: name, Err: err}
				return
			}
			changes = append(changes, change{holder, field, mapped})
		})
	}
	if failed != nil {
		return failed
	}
	for _, c := range changes {
		c.holder[c.field] = c.image
	}
	if len(unused) > 0 {
		return &UnusedImagesError{Set: s.ID(), Names: slices.Sorted(maps.Keys(unused))}
	}
	return nil
}

// apply makes the image that this one becomes.
func (m ImageMapping) apply(image string) (string, error) {
	name, tag, digest := splitImage(image)
	if m.NewName != "" {
		name = m.NewName
	}
	if m.NewTag != "" || m.Digest != "" {
		tag, digest = m.NewTag, m.Digest
	}
	if tag != "" {
		name += ":" + tag
	}
	if digest != "" {
		name += "@" + digest
	}
	if m == (ImageMapping{}) { // what is wrong in the set itself is not the map's
		return name, nil
	}
	if _, err := reference.ParseNormalizedNamed(name); err != nil {
		return "", fmt.Errorf("it makes %q: %w", name, err)
	}
	return name, nil
}

// splitImage takes a reference apart as text, since what is to be replaced need not be valid: "app:v1@sha256:REPLACE_ME". The colon of a
// port is no tag's.
func splitImage(image string) (name, tag, digest string) {
	name, digest, _ = strings.Cut(image, "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		name, tag = name[:at], name[at+1:]
	}
	return name, tag, digest
}

// eachImage calls visit for each place of an object that names an image.
func eachImage(o *unstructured.Unstructured, visit func(path string, holder map[string]any, field string)) {
	at := podSpecPath(o)
	if at == nil {
		return
	}
	pod, path := dig(o.Object, at...), strings.Join(at, ".")
	for _, kind := range []string{"initContainers", "containers", "ephemeralContainers"} {
		list, _ := dig(pod, kind).([]any)
		for i, c := range list {
			if c, ok := c.(map[string]any); ok {
				visit(fmt.Sprintf("%s.%s[%d].image", path, kind, i), c, "image")
			}
		}
	}
	volumes, _ := dig(pod, "volumes").([]any)
	for i, v := range volumes {
		if image, ok := dig(v, "image").(map[string]any); ok {
			visit(fmt.Sprintf("%s.volumes[%d].image.reference", path, i), image, "reference")
		}
	}
}
