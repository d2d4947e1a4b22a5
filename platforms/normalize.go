package platforms

import (
	"fmt"
	"slices"
	"strings"

	containerd "github.com/containerd/platforms"
)

// Normalize brings a platform string into normal form, so that equal platforms compare as equal: "linux/arm64/v8" and
// "linux/aarch64" are "linux/arm64", "linux/x86_64" is "linux/amd64". The error says what is wrong with a string that names no
// platform. A bare architecture is an error: what it means would depend on the machine that reads it.
func Normalize(platform string) (string, error) {
	trimmed := strings.TrimSpace(platform)
	if !strings.Contains(trimmed, "/") {
		return "", fmt.Errorf("%q is not a platform: want os/architecture, such as linux/arm64", platform)
	}
	parsed, err := containerd.Parse(trimmed)
	if err != nil {
		return "", fmt.Errorf("%q is not a platform: %w", platform, err)
	}
	return containerd.Format(containerd.Normalize(parsed)), nil
}

// Missing returns the wanted platforms that are not offered, in normal form and sorted. Spelling does not matter; a string that
// names no platform is kept as it is on the wanted side, so that it shows up, and ignored on the offered side.
func Missing(want, offered []string) []string {
	var have, missing []string
	for _, entry := range offered {
		if platform, err := Normalize(entry); err == nil {
			have = append(have, platform)
		}
	}
	for _, entry := range want {
		platform, err := Normalize(entry)
		if err != nil {
			platform = entry
		}
		if !slices.Contains(have, platform) {
			missing = append(missing, platform)
		}
	}
	return unique(missing)
}

// architecture returns the middle of a platform in normal form, without its variant: neither an emulator nor a tag has one.
func architecture(platform string) string {
	_, rest, _ := strings.Cut(platform, "/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}
