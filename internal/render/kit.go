package render

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// KitHome is the prefix under which the Kit images are published.
const KitHome = "ghcr.io/snapwich"

// The Custodian is the Envoy that its project publishes, pinned by tag and digest; jr2 builds no image for it.
const (
	custodianHome   = "docker.io/envoyproxy"
	custodianTag    = "distroless-v1.39.1"
	custodianDigest = "sha256:eb2c01c13125d1629637cb4e4cce7207009fb7cc2c8027f9742758549d15b6f4"
)

// Kit holds the references of the images that the Kit brings. They are manifest lists, so they carry no platform suffix.
type Kit struct {
	Harness, Operator, Orchestrator, Custodian string
	// Home is the prefix from which the first three are pulled.
	Home string
	// Version is the Kit version, without a leading "v".
	Version string
}

// KitOf resolves the Kit images of a version. kitRegistry replaces the published home, also the Custodian's; nil or blank means
// the published one. A trailing slash is dropped and a port in the registry's host is no tag. The error is a *KitError.
func KitOf(version string, kitRegistry *string) (Kit, error) {
	kit := Kit{Home: KitHome, Version: strings.TrimPrefix(version, "v")}
	custodian := custodianHome
	if kitRegistry != nil && strings.TrimSpace(*kitRegistry) != "" {
		kit.Home = strings.TrimRight(strings.TrimSpace(*kitRegistry), "/")
		custodian = kit.Home
	}
	for _, image := range []struct {
		into *string
		ref  string
	}{
		{&kit.Harness, kit.Home + "/jr2-harness:" + kit.Version},
		{&kit.Operator, kit.Home + "/jr2-operator:" + kit.Version},
		{&kit.Orchestrator, kit.Home + "/jr2-orchestrator:" + kit.Version},
		{&kit.Custodian, custodian + "/envoy:" + custodianTag + "@" + custodianDigest},
	} {
		if err := checkRef(image.ref); err != nil {
			return Kit{}, &KitError{Ref: image.ref, Registry: kitRegistry, Err: err}
		}
		*image.into = image.ref
	}
	return kit, nil
}

// checkRef wants a reference that stands as it is written: nothing that a registry's default would change.
func checkRef(ref string) error {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return err
	}
	if _, tagged := named.(reference.Tagged); !tagged {
		return reference.ErrTagInvalidFormat
	}
	return nil
}

// KitError says that a Kit image's reference is malformed: because of kitRegistry, or because of the version.
type KitError struct {
	// Ref is the reference that was tried.
	Ref string
	// Registry is kitRegistry as given; nil when the published home was used.
	Registry *string
	Err      error
}

func (e *KitError) Error() string {
	if e.Registry == nil {
		return fmt.Sprintf("the Kit version makes no image reference: %q: %v", e.Ref, e.Err)
	}
	return fmt.Sprintf("kitRegistry %q makes no image reference: %q: %v — give a prefix such as registry.example.com/mirror", *e.Registry, e.Ref, e.Err)
}

func (e *KitError) Unwrap() error { return e.Err }
