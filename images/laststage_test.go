package images_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jr2.dev/jr2/images"
)

// TestF12BaseOfTheLastStage: for which platform a last stage's base is comes from the base's own configuration, as the builder tells it, and not
// from what the image itself says, which is what was asked for. TestBuildKit has it from a builder.
func TestF12BaseOfTheLastStage(t *testing.T) {
	const config, base = "containerimage.config", "containerimage.base.config"
	const onAMD64, onARM64 = `{"os": "linux", "architecture": "amd64"}`, `{"os": "linux", "architecture": "arm64", "variant": "v8"}`
	both := []string{"linux/amd64", "linux/arm64"}
	for name, test := range map[string]struct {
		set  []string
		says map[string]string
		want []string // the platform of each base
	}{
		"pinned to the build platform": {both, map[string]string{
			config + "/linux/amd64": onAMD64, base + "/linux/amd64": onAMD64, config + "/linux/arm64": onARM64, base + "/linux/arm64": onAMD64,
		}, []string{"linux/amd64", "linux/amd64"}},
		"the only platform, on a base for another": {[]string{"linux/arm64"}, map[string]string{config: onARM64, base: onAMD64}, []string{"linux/amd64"}},
		"one of two from scratch": {both, map[string]string{
			config + "/linux/amd64": onAMD64, config + "/linux/arm64": onARM64, base + "/linux/arm64": onAMD64,
		}, []string{"", "linux/amd64"}},
		"not pinned": {both, map[string]string{
			config + "/linux/amd64": onAMD64, base + "/linux/amd64": onAMD64, config + "/linux/arm64": onARM64, base + "/linux/arm64": onARM64,
		}, both},
		"from scratch": {both, map[string]string{config + "/linux/amd64": onAMD64, config + "/linux/arm64": onARM64}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := map[string][]byte{}
			for key, text := range test.says {
				metadata[key] = []byte(text)
			}
			built, err := images.BuiltImages(metadata, test.set)
			must(t, err)
			var got []string
			for _, image := range built {
				got = append(got, image.BasePlatform)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("bases %q, want %q", got, test.want)
			}
		})
	}
}

// TestF12OneBaseForTwoArchitectures: an engine that does not tell the base's platform shows by the first layers that two images stand on one base.
func TestF12OneBaseForTwoArchitectures(t *testing.T) {
	const plain, pinned = "FROM base\nCOPY x /\n", "FROM --platform=$BUILDPLATFORM base\nCOPY x /\n"
	two := []string{"linux/amd64", "linux/arm64"}
	for name, test := range map[string]struct {
		engine, dockerfile string
		set, layers        []string          // the first layer for each platform; "" is an image without layers
		wrong              map[string]string // nil means that it passes
	}{
		"pinned to the build platform": {"amd64", pinned, two, []string{"a", "a"}, map[string]string{"linux/arm64": "linux/amd64"}},
		"the engine is the other":      {"arm64", pinned, two, []string{"a", "a"}, map[string]string{"linux/amd64": "linux/arm64"}},
		"a base for one platform":      {"amd64", plain, two, []string{"a", "a"}, map[string]string{"linux/arm64": "linux/amd64"}},
		"a stage on a pinned one":      {"amd64", "FROM --platform=linux/amd64 base AS out\nFROM out\nCOPY x /\n", two, []string{"a", "a"}, map[string]string{"linux/arm64": "linux/amd64"}},
		"a pinned helper":              {"amd64", "FROM --platform=$BUILDPLATFORM tools AS help\nFROM base\nCOPY --from=help /x /\n", two, []string{"a", "b"}, nil},
		"from scratch":                 {"amd64", "FROM --platform=$BUILDPLATFORM tools AS help\nFROM scratch\nCOPY x /\n", two, []string{"a", "a"}, nil},
		"from a stage from scratch":    {"amd64", "FROM scratch AS Empty\nFROM empty\nCOPY x /\n", two, []string{"a", "a"}, nil},
		"two variants":                 {"amd64", plain, []string{"linux/amd64", "linux/amd64/v3"}, []string{"a", "a"}, nil},
		"no layers":                    {"amd64", plain, two, []string{"", ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var built []v1.Image
			for _, content := range test.layers {
				if content == "" {
					built = append(built, amd64("").image())
					continue
				}
				built = append(built, layered(t, amd64(""), content))
			}
			err := images.CheckBases(test.engine, folder(t, "ctx", map[string]string{"Dockerfile": test.dockerfile}), test.set, built)
			if test.wrong == nil {
				must(t, err)
				return
			}
			var wrong *images.PlatformError
			if !errors.As(err, &wrong) || !wrong.Base || !maps.Equal(wrong.Wrong, test.wrong) {
				t.Errorf("got %v", err)
			}
		})
	}
}
