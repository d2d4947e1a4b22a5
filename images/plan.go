package images

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"jr2.dev/jr2/internal/seed"
	"jr2.dev/jr2/platforms"
)

// A Request says which images an Instance needs and where they have to go.
type Request struct {
	Instance string
	// Registry is the prefix under which images are pushed; empty means none.
	Registry string
	// Local is what the cluster says of a registry beside it; the zero value says nothing.
	Local LocalRegistry
	// Context is the name of the kube context, for messages.
	Context string
	// Kind is the name of the kind cluster that the context is; empty when it is none. Without a Registry, images are loaded into its nodes.
	Kind string
	// Platforms is the set to build for, such as "linux/amd64". At least one when there are Contexts.
	Platforms []string
	// Contexts in build order: images/default first, then the carried folders in walk order.
	Contexts []Context
	// Previous is the record of what the cluster runs; nil means none.
	Previous *Record
	// Force ignores every "already built" answer.
	Force bool
}

// A Decision is what Plan decided: one Image per key.
type Decision struct {
	Instance string
	Registry string
	// Kind is the kind cluster whose nodes the images are loaded into; empty when they are pushed.
	Kind      string
	Platforms []string
	Images    []Image
	// Digests are the content digests of all Contexts by their Dir, also of those that share an Image.
	Digests map[string]string
	// Force is Request.Force: a registry that holds a ref does not save its build.
	Force bool
	// Notes are warnings, each one line.
	Notes []string
}

// An Image is one image of a Decision.
type Image struct {
	Key    string // DefaultKey or the content digest
	Name   string
	Dir    string
	Digest string // content digest of Dir, 12 hex digits
	Ref    string // under which it is pushed
	// Pull is the ref by which nodes pull it, and which the record holds; empty means Ref.
	Pull string
	// Skip says that the cluster's record proves the image delivered: nothing is built, pushed or asked.
	Skip bool
	// Why gives the reason of Skip, or of its absence, in simple words.
	Why string
	// User is the recorded USER of a skipped image.
	User string
}

// PullRef is the ref by which nodes pull the image.
func (i Image) PullRef() string {
	if i.Pull != "" {
		return i.Pull
	}
	return i.Ref
}

// Needed says whether something has to be built or delivered.
func (d *Decision) Needed() bool {
	for _, img := range d.Images {
		if !img.Skip {
			return true
		}
	}
	return false
}

// A NoRegistryError says that images must reach a cluster that is not kind, and that no registry is configured.
type NoRegistryError struct{ Context string }

func (e *NoRegistryError) Error() string { return fmt.Sprintf(seed.NoRegistry, e.Context) }

// Plan decides per image whether it has to be built and what it is called. It reads the folders and nothing else.
//
// A *NoRegistryError, or a *platforms.NeedsRegistryError for several platforms on kind, comes only when something has to be built or
// delivered; the Decision comes with it.
// Two keys with one content and name (images/default that a Machine also names by URL) share a ref, which Deliver builds once.
func Plan(ctx context.Context, req Request) (*Decision, error) {
	d := &Decision{Instance: req.Instance, Registry: req.Registry, Platforms: req.Platforms, Force: req.Force, Digests: map[string]string{}}
	seen := map[string]bool{}
	var errs []error
	for _, c := range req.Contexts {
		img, err := decide(ctx, req, c)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.Digests[c.Dir] = img.Digest
		if !seen[img.Key] { // one folder may be named by several Workspaces
			seen[img.Key] = true
			d.Images = append(d.Images, img)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if !d.Needed() {
		return d, nil
	}
	switch {
	case req.Registry != "":
		if note := HostNote("registry", req.Registry); note != "" {
			d.Notes = []string{note}
		}
	case req.Kind == "":
		return d, &NoRegistryError{req.Context}
	case len(sorted(req.Platforms)) > 1:
		return d, &platforms.NeedsRegistryError{Platforms: sorted(req.Platforms)}
	default:
		d.Kind = req.Kind
	}
	return d, nil
}

// decide names one image and compares it with the record.
func decide(ctx context.Context, req Request, c Context) (Image, error) {
	name := c.Name
	if name == "" {
		name = filepath.Base(c.Dir)
	}
	digest, err := ContextDigest(ctx, c.Dir)
	if err != nil {
		return Image{}, err
	}
	ref, err := Ref(req.Registry, req.Instance, name, digest, req.Platforms)
	if err != nil {
		return Image{}, err
	}
	img := Image{Key: c.Key, Name: name, Dir: c.Dir, Digest: digest, Ref: ref}
	if pull := req.Local.PullName(req.Registry); pull != req.Registry {
		if img.Pull, err = Ref(pull, req.Instance, name, digest, req.Platforms); err != nil {
			return Image{}, err
		}
	}
	if img.Key == "" {
		img.Key = digest
	}
	user, recorded := req.Previous.find(img.Key, img.PullRef())
	switch {
	case req.Force:
		img.Why = "forced"
	case recorded:
		img.Skip, img.User, img.Why = true, user, "the cluster's record names it as delivered"
	case req.Previous == nil || req.Previous.Sandbox[img.Key] == "":
		img.Why = "the cluster has no record of it"
	case req.Previous.Sandbox[img.Key] == img.PullRef():
		img.Why = "the cluster's record does not say which USER it declares"
	default:
		img.Why = "the cluster runs " + req.Previous.Sandbox[img.Key]
	}
	return img, nil
}

// HostNote warns of a prefix that means Docker Hub although it may not look so; field names it ("registry"). Empty when the prefix names a
// host.
func HostNote(field, prefix string) string {
	first, _, _ := strings.Cut(prefix, "/")
	if first == "localhost" || strings.ContainsAny(first, ".:") {
		return ""
	}
	return fmt.Sprintf("%s %q names no host, so it means docker.io/%s", field, prefix, prefix)
}
