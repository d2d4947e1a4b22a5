package platforms

import (
	"fmt"
	"strings"

	"jr2.dev/jr2/internal/seed"
)

// UnsupportedError says that the configuration names platforms for which the kit releases no image, or names none.
type UnsupportedError struct {
	// Entries is the unsupported entries as they are written, sorted; none when the list is empty.
	Entries []string
}

func (e *UnsupportedError) Error() string {
	names := make([]string, len(e.Entries))
	for i, entry := range e.Entries {
		names[i] = entry
		if entry == "" { // an unset variable that was split at its commas
			names[i] = "an empty entry"
		}
	}
	if len(names) == 0 {
		names = []string{"no platform (the list is empty)"}
	}
	return fmt.Sprintf(seed.PlatformsName, strings.Join(names, ", "))
}

// NoneError says that no node has a platform for which the kit releases images.
type NoneError struct {
	// Architectures is what the nodes report, sorted; none when they report nothing or there is no node.
	Architectures []string
	// Nodes is how many nodes were looked at.
	Nodes int
}

func (e *NoneError) Error() string {
	what := strings.Join(e.Architectures, ", ")
	switch {
	case e.Nodes == 0:
		what = "no architecture (there is no such node)"
	case what == "":
		what = "no architecture"
	}
	return fmt.Sprintf(seed.NodesReport, what)
}

// EmulationError says that the builder cannot build for a platform of the set.
type EmulationError struct {
	// Missing and Offered are platforms in normal form, Missing sorted, Offered in the builder's order.
	Missing, Offered []string
}

// Error is two lines: what is missing, and the command that installs it.
func (e *EmulationError) Error() string {
	architectures := make([]string, len(e.Missing))
	for i, platform := range e.Missing {
		architectures[i] = architecture(platform)
	}
	return fmt.Sprintf(seed.CannotEmulate, strings.Join(e.Missing, ", "), strings.Join(e.Offered, ", ")) + "\n  " +
		fmt.Sprintf(seed.InstallEmulation, strings.Join(unique(architectures), ","))
}

// NeedsRegistryError says that a set of several platforms has no place to go: their images are one manifest list, and only a
// registry holds one.
type NeedsRegistryError struct {
	Platforms []string
}

func (e *NeedsRegistryError) Error() string {
	return fmt.Sprintf("this converge builds for %s, and an image for several platforms is a manifest list, which can only be pushed — "+
		"set `registry` in jr2.config.ts (from env), or name one platform with `platforms`", strings.Join(e.Platforms, ", "))
}

// CheckBuilder says whether a builder that offers platforms can build for the wanted ones. The error is an *EmulationError. A
// builder that offers nothing has not said what it can do: no error.
func CheckBuilder(want, offered []string) error {
	if len(offered) == 0 {
		return nil
	}
	if missing := Missing(want, offered); len(missing) > 0 {
		return &EmulationError{Missing: missing, Offered: offered}
	}
	return nil
}

// CheckRegistry says whether the set can be delivered: several platforms need a registry. The error is a *NeedsRegistryError.
func CheckRegistry(set Set, registry *string) error {
	if len(set.Platforms) > 1 && (registry == nil || *registry == "") {
		return &NeedsRegistryError{Platforms: set.Platforms}
	}
	return nil
}
