package platforms_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/seed"
	"jr2.dev/jr2/platforms"
)

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct{ want, offered, missing []string }{
		"all there":      {want: []string{"linux/amd64"}, offered: []string{"linux/amd64", "linux/386"}},
		"sorted":         {want: []string{"linux/arm64", "linux/amd64"}, offered: nil, missing: []string{"linux/amd64", "linux/arm64"}},
		"variant":        {want: []string{"linux/arm64"}, offered: []string{"linux/arm64/v8"}},
		"wanted variant": {want: []string{"linux/arm64/v8", "linux/arm64"}, offered: []string{"linux/amd64"}, missing: []string{"linux/arm64"}},
		"arm is no arm64": {
			want: []string{"linux/arm64"}, offered: []string{"linux/arm/v7", "linux/arm"}, missing: []string{"linux/arm64"},
		},
		"newer variant":    {want: []string{"linux/amd64"}, offered: []string{"linux/amd64/v3"}, missing: []string{"linux/amd64"}},
		"what is no name":  {want: []string{"nonsense"}, offered: []string{"more nonsense"}, missing: []string{"nonsense"}},
		"offered nonsense": {want: []string{"linux/amd64"}, offered: []string{"", "linux/amd64"}},
	} {
		if got := platforms.Missing(test.want, test.offered); !slices.Equal(got, test.missing) {
			t.Errorf("%s: got %v, want %v", name, got, test.missing)
		}
	}
}

func TestCheckBuilder(t *testing.T) {
	if err := platforms.CheckBuilder([]string{"linux/arm64"}, nil); err != nil {
		t.Errorf("a builder that says nothing: %v", err)
	}
	if err := platforms.CheckBuilder([]string{"linux/amd64"}, []string{"linux/amd64", "linux/amd64/v2"}); err != nil {
		t.Error(err)
	}
	err := platforms.CheckBuilder([]string{"linux/amd64", "linux/arm64"}, []string{"linux/amd64", "linux/amd64/v2", "linux/386"})
	var emulation *platforms.EmulationError
	if !errors.As(err, &emulation) || !slices.Equal(emulation.Missing, []string{"linux/arm64"}) {
		t.Fatalf("got %v, want an EmulationError for linux/arm64", err)
	}
	want := fmt.Sprintf(seed.CannotEmulate, "linux/arm64", "linux/amd64, linux/amd64/v2, linux/386") + "\n  " +
		fmt.Sprintf(seed.InstallEmulation, "arm64")
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	several := platforms.CheckBuilder([]string{"linux/arm64", "linux/arm/v7", "linux/arm/v6"}, []string{"linux/amd64"})
	if several == nil || !strings.HasSuffix(several.Error(), fmt.Sprintf(seed.InstallEmulation, "arm,arm64")) {
		t.Errorf("the command installs emulators by architecture: %v", several)
	}
}

func TestCheckRegistry(t *testing.T) {
	empty, prefix := "", "registry.example.com/team"
	one, two := platforms.Set{Platforms: []string{"linux/amd64"}}, platforms.Set{Platforms: []string{"linux/amd64", "linux/arm64"}}
	for name, test := range map[string]struct {
		set      platforms.Set
		registry *string
		refused  bool
	}{
		"one, none":    {set: one},
		"two, one":     {set: two, registry: &prefix},
		"two, none":    {set: two, refused: true},
		"two, empty":   {set: two, registry: &empty, refused: true},
		"one, empty":   {set: one, registry: &empty},
		"no set, none": {},
	} {
		var needs *platforms.NeedsRegistryError
		if err := platforms.CheckRegistry(test.set, test.registry); errors.As(err, &needs) != test.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNormalize(t *testing.T) {
	for given, want := range map[string]string{
		"linux/arm64/v8": "linux/arm64", "linux/arm64": "linux/arm64", "linux/aarch64": "linux/arm64", "linux/x86_64": "linux/amd64",
		"LINUX/AMD64": "linux/amd64", "linux/amd64/v1": "linux/amd64", "linux/arm/7": "linux/arm/v7", " linux/amd64\n": "linux/amd64",
	} {
		if got, err := platforms.Normalize(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"", "amd64", "linux", "linux/", "linux/amd64/v1/x", "linux/am d64"} {
		if got, err := platforms.Normalize(given); err == nil {
			t.Errorf("%q: got %q, want an error", given, got)
		}
	}
}
