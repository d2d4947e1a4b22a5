package images

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"jr2.dev/jr2/platforms"
)

// A Target is what an image reference points to now.
type Target struct {
	// Digest of the manifest, or of the manifest list: "sha256:…".
	Digest string
	// Platforms for which it holds an image, in normal form and sorted; none for an artifact that is no image.
	Platforms []string
	// Mirror that had it ("mirror.example.com:5000/hub"); empty when the registry itself was asked.
	Mirror string
}

// An AbsentError is a registry's clear word that it holds no such image.
type AbsentError struct {
	Ref string
	Err error
}

func (e *AbsentError) Error() string { return fmt.Sprintf("the registry holds no image %s", e.Ref) }
func (e *AbsentError) Unwrap() error { return e.Err }

// Denied says whether the registry answered, and the answer is that these credentials may not do that, or that it wants some.
func (e *RegistryError) Denied() bool {
	return e.Unauthorized || hasStatus(e.Err, http.StatusForbidden)
}

// LookName is the name by which we ask for what nodes pull as ref ("kind-registry:5000/team/app:v1"): the other way round of PullName.
func (l LocalRegistry) LookName(ref string) string {
	host, rest, ok := strings.Cut(ref, "/")
	if l.FromRuntime == "" || !ok || host != l.FromRuntime {
		return ref
	}
	return l.Host + "/" + rest
}

// Names says whether nodes know ref by a name of this registry, so that what we are told about it is true for them.
func (l LocalRegistry) Names(ref string) bool {
	host, _, ok := strings.Cut(ref, "/")
	return ok && l.Host != "" && (host == l.FromRuntime || sameHost(host, l.Host))
}

// Look asks the registry of ref what it points to. The keychain, the transport and the rule for plain http are those of the Registry.
//
// One request reads a manifest list, whose word about platforms is believed; an image without a list, or an entry of a list that states
// no platform, costs two more for its configuration. Attestations are no platform. The registry's Mirrors are asked before it.
//
// The error is a *RefError for a text that is no reference, an *AbsentError when the registry says that there is no such image, and a
// *RegistryError for anything else.
func (r *Registry) Look(ctx context.Context, ref string) (Target, error) {
	parsed, err := r.parse(ref)
	if err != nil {
		return Target{}, err
	}
	target, ok, failed := r.mirrored(ctx, parsed)
	if ok {
		return target, nil
	}
	desc, err := remote.Get(parsed, r.options(ctx)...)
	if isAbsent(err) {
		return Target{}, &AbsentError{Ref: ref, Err: registryError(parsed, err)}
	}
	if err == nil {
		target = Target{Digest: desc.Digest.String()}
		target.Platforms, err = platformsOf(desc)
	}
	if err != nil {
		refused := registryError(parsed, err)
		refused.Mirrors = failed
		return Target{}, refused
	}
	return target, nil
}

// LookAs is Look with these credentials for the registry of ref, such as a kubelet would show. Other hosts, mirrors among them, do not see them.
func (r *Registry) LookAs(ctx context.Context, ref string, credentials authn.Authenticator) (Target, error) {
	parsed, err := r.parse(ref)
	if err != nil {
		return Target{}, err
	}
	as := *r
	as.Keychain = oneRegistry{host: parsed.Context().RegistryStr(), credentials: credentials, others: r.keychain()}
	return as.Look(ctx, ref)
}

// oneRegistry answers for one host, and leaves the others to another keychain.
type oneRegistry struct {
	host        string
	credentials authn.Authenticator
	others      authn.Keychain
}

// Resolve implements authn.Keychain.
func (k oneRegistry) Resolve(target authn.Resource) (authn.Authenticator, error) {
	if target.RegistryStr() == k.host {
		return k.credentials, nil
	}
	return k.others.Resolve(target)
}

func platformsOf(desc *remote.Descriptor) ([]string, error) {
	if !desc.MediaType.IsIndex() {
		image, err := desc.Image()
		if err != nil {
			return nil, err
		}
		return ownPlatform(image)
	}
	index, err := desc.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	all := platforms.FromIndex(manifest)
	for _, entry := range unstated(manifest) {
		image, err := index.Image(entry.Digest)
		if err != nil {
			return nil, err
		}
		own, err := ownPlatform(image)
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// unstated are the entries of an index that may be images and do not say for what: OCI lets the platform out. Attestations state one, an
// unknown one.
func unstated(index *v1.IndexManifest) []v1.Descriptor {
	var entries []v1.Descriptor
	for _, entry := range index.Manifests {
		artifact := entry.ArtifactType != "" && !types.MediaType(entry.ArtifactType).IsConfig()
		if entry.MediaType.IsImage() && !artifact && entry.Platform == nil {
			entries = append(entries, entry)
		}
	}
	return entries
}

// ownPlatform is the platform of an image's configuration; none when that is no image's.
func ownPlatform(image v1.Image) ([]string, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if !manifest.Config.MediaType.IsConfig() {
		return nil, nil
	}
	one, err := readImage(image)
	if err != nil {
		return nil, err
	}
	if normal, err := platforms.Normalize(one.own); err == nil && !strings.HasPrefix(normal, "unknown") {
		return []string{normal}, nil
	}
	return nil, nil
}
