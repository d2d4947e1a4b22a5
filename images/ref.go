package images

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"jr2.dev/jr2/platforms"
)

// A RefError says why no valid image reference can be made.
type RefError struct {
	Ref    string // the text that is no reference
	Reason string
}

func (e *RefError) Error() string { return fmt.Sprintf("image name %q: %s", e.Ref, e.Reason) }

// Ref is the reference of an Instance's image: <registry>/jr2-sandbox-<instance>-<name>:<digest>-<arch>[-<arch>…], the
// architectures sorted. An empty registry gives the local form without a prefix. platformSet holds platforms such as
// "linux/amd64" or "linux/arm64/v8"; of each only the architecture counts. The name only decorates: the digest identifies.
func Ref(registry, instance, name, digest string, platformSet []string) (string, error) {
	suffix, err := archSuffix(platformSet)
	if err != nil {
		return "", err
	}
	repo := "jr2-sandbox-" + instance + "-" + name
	if registry != "" {
		if strings.Contains(registry, "://") {
			return "", &RefError{registry, "a registry is a prefix such as registry.example.com/team, without a scheme"}
		}
		repo = strings.TrimSuffix(registry, "/") + "/" + repo
	}
	ref := repo + ":" + digest + suffix
	if err := checkRef(ref, instance, name); err != nil {
		return "", err
	}
	return ref, nil
}

// checkRef parses ref as the tools behind it will, and says in simple words what is wrong.
func checkRef(ref, instance, name string) error {
	for what, part := range map[string]string{"Instance name": instance, "image folder name": name} {
		if strings.ToLower(part) != part {
			return &RefError{ref, fmt.Sprintf("the %s %q has capitals, and an image name is lower case: rename it to %q", what, part, strings.ToLower(part))}
		}
	}
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return &RefError{ref, err.Error()}
	}
	if _, ok := named.(reference.Tagged); !ok {
		return &RefError{ref, "it has no tag"}
	}
	return nil
}

// archSuffix is "-<arch>" for each architecture of the set, sorted.
func archSuffix(platformSet []string) (string, error) {
	archs := make([]string, 0, len(platformSet))
	for _, p := range platformSet {
		normal, err := platforms.Normalize(p)
		if err != nil {
			return "", err
		}
		archs = append(archs, architecture(normal))
	}
	slices.Sort(archs)
	archs = slices.Compact(archs)
	if len(archs) == 0 {
		return "", errors.New("an image needs at least one platform to be built for")
	}
	return "-" + strings.Join(archs, "-"), nil
}

// architecture is the second part of a platform in normal form.
func architecture(platform string) string {
	_, rest, _ := strings.Cut(platform, "/")
	arch, _, _ := strings.Cut(rest, "/")
	return arch
}
