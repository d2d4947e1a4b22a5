package images

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// A Bundle are the images that a release of a product brings for its Sandboxes. A Sandbox asks for one by its name ("go"), and an
// administrator turns them off, replaces them or keeps them warm. The zero value brings none.
//
// Source: the settings agents.sandboxImages.bundled of the third source document.
type Bundle struct {
	// Home is the prefix under which the release publishes them, such as "registry.example.com/kora"; another one says where they are
	// mirrored. It may hold a port and a path.
	Home string `json:"home"`
	// Prefix stands before a name, such as "kora-sandbox-".
	Prefix string `json:"prefix,omitempty"`
	// Version is their tag.
	Version string `json:"version"`
	// Images are all images of the release by name.
	Images map[string]Bundled `json:"images"`
}

// Bundled is what an administrator says of one image of a Bundle. The zero value is on, as published and not warm.
type Bundled struct {
	// Enabled false turns the image off: Ref gives it to no new Sandbox. Nothing happens to those that run. nil means true.
	Enabled *bool `json:"enabled,omitempty"`
	// Image is the reference to use in place of the published one; empty means Home/Prefix+name:Version.
	Image string `json:"image,omitempty"`
	// Warm keeps the image pulled on every Sandbox node; see Bundle.Warm.
	Warm bool `json:"warm,omitempty"`
}

// On says whether new Sandboxes may have the image.
func (b Bundled) On() bool { return b.Enabled == nil || *b.Enabled }

// A BundledError says that a new Sandbox can't have an image of a Bundle by this name.
type BundledError struct {
	Name string
	// Off says that the release brings the image and that it is turned off; otherwise it brings none of this name.
	Off bool
	// Offered are the names that are on, sorted.
	Offered []string
}

func (e *BundledError) Error() string {
	why := "is not among the bundled images"
	if e.Off {
		why = "is turned off: what runs on it keeps running, and nothing new starts on it until it is turned on again"
	}
	offered := "none is offered"
	if len(e.Offered) > 0 {
		offered = "offered are " + strings.Join(e.Offered, ", ")
	}
	return fmt.Sprintf("bundled image %q %s; %s", e.Name, why, offered)
}

// With returns the bundle with an administrator's settings in place of its own. A name that the release does not bring is a *BundledError:
// a setting that nobody reads may have been meant to turn something off.
func (b Bundle) With(settings map[string]Bundled) (Bundle, error) {
	merged := maps.Clone(b.Images)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if _, ok := b.Images[name]; !ok {
			return Bundle{}, &BundledError{Name: name, Offered: b.offered()}
		}
		merged[name] = settings[name]
	}
	b.Images = merged
	return b, b.Check()
}

// Check says whether every image, on or off, makes a reference with a tag or a digest. The error is a *RefError.
func (b Bundle) Check() error {
	for _, name := range slices.Sorted(maps.Keys(b.Images)) {
		ref := b.ref(name)
		named, err := reference.ParseNormalizedNamed(ref)
		if err != nil {
			return &RefError{ref, fmt.Sprintf("bundled image %q: %v", name, err)}
		}
		if reference.IsNameOnly(named) {
			return &RefError{ref, fmt.Sprintf("bundled image %q has no tag and no digest", name)}
		}
	}
	return nil
}

// Ref is the reference for a new Sandbox that asks for the image by name; a *BundledError when it is off or not of the bundle.
func (b Bundle) Ref(name string) (string, error) {
	image, ok := b.Images[name]
	if !ok || !image.On() {
		return "", &BundledError{Name: name, Off: ok, Offered: b.offered()}
	}
	return b.ref(name), nil
}

// Warm are the references that Sandbox nodes keep pulled: of images that are on and Warm, each once and sorted.
func (b Bundle) Warm() []string {
	var refs []string
	for name, image := range b.Images {
		if image.On() && image.Warm {
			refs = append(refs, b.ref(name))
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// Refused finds the image that is off and that ref names, in any spelling; ok is false when there is none. The published name and the
// replacement both count, each by its repository, so that another version of it is not let in; where an image that is on shares the
// repository, by the whole reference.
func (b Bundle) Refused(ref string) (name string, ok bool) {
	on := map[string]bool{}
	for name, image := range b.Images {
		if image.On() {
			for _, spelled := range b.spellings(name) {
				on[spelled] = true
			}
		}
	}
	asked := whole(ref)
	for _, name := range slices.Sorted(maps.Keys(b.Images)) {
		if b.Images[name].On() {
			continue
		}
		for _, spelled := range b.spellings(name) {
			if !on[spelled] && slices.Contains(asked, spelled) {
				return name, true
			}
		}
	}
	return "", false
}

// spellings are the references and the repositories by which an image of the bundle is known.
func (b Bundle) spellings(name string) []string {
	known := whole(b.published(name))
	if image := b.Images[name].Image; image != "" {
		known = append(known, whole(image)...)
	}
	return known
}

// whole is a reference in full, and its repository; nothing for a text that is no reference.
func whole(ref string) []string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil
	}
	return append(spellings(ref), named.Name())
}

func (b Bundle) ref(name string) string {
	if image := b.Images[name].Image; image != "" {
		return image
	}
	return b.published(name)
}

func (b Bundle) published(name string) string {
	return strings.TrimSuffix(b.Home, "/") + "/" + b.Prefix + name + ":" + b.Version
}

func (b Bundle) offered() []string {
	var names []string
	for name, image := range b.Images {
		if image.On() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
