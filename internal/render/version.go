package render

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
)

// CompareVersions orders two Kit versions by semantic versioning, with or without a leading "v": negative when a is older, so
// that 1.2.0-rc.1 is older than 1.2.0. A version that cannot be read is an error: "newer" must not be guessed, because a shared
// operator is never downgraded.
func CompareVersions(a, b string) (int, error) {
	va, err := semver.NewVersion(a)
	if err != nil {
		return 0, fmt.Errorf("version %q: %w", a, err)
	}
	vb, err := semver.NewVersion(b)
	if err != nil {
		return 0, fmt.Errorf("version %q: %w", b, err)
	}
	return va.Compare(vb), nil
}
