package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

const orchestratorPackage = "@jr2/orchestrator"

// exactVersion is a version, not a range: npm's own words for "any" and "newest" say nothing.
var exactVersion = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$`)

// kitVersion finds the version of @jr2/orchestrator: the installed one, else the exact one that package.json asks for, else the
// given one. The notes say what was asked for or found and could not be used.
func kitVersion(f *fence, given string) (version string, notes []string) {
	installed, notes := installedKit(f)
	if installed != "" {
		return installed, nil
	}
	type dependencies map[string]any
	var pkg struct {
		Dependencies         dependencies `json:"dependencies"`
		DevDependencies      dependencies `json:"devDependencies"`
		OptionalDependencies dependencies `json:"optionalDependencies"`
		PeerDependencies     dependencies `json:"peerDependencies"`
	}
	name := filepath.Join(f.root, "package.json")
	if err := f.json(name, &pkg); err != nil && !os.IsNotExist(err) {
		notes = append(notes, fmt.Sprintf("%s: %v — the Kit version %s is taken", name, reason(err), given))
		return given, notes
	}
	asked := ""
	for _, deps := range []dependencies{pkg.Dependencies, pkg.DevDependencies, pkg.OptionalDependencies, pkg.PeerDependencies} {
		text, ok := deps[orchestratorPackage]
		if !ok {
			continue
		}
		spec := fmt.Sprint(text)
		if m := exactVersion.FindStringSubmatch(spec); m != nil {
			return m[1], notes
		}
		if asked == "" {
			asked = fmt.Sprintf("%q", clip(redactText(spec)))
		}
	}
	if asked != "" {
		notes = append(notes, fmt.Sprintf("%s asks for %s %s, which is no exact version, and none is installed in node_modules — the Kit version %s is taken; "+
			"install it, or ask for an exact version", name, orchestratorPackage, asked, given))
	}
	return given, notes
}

// installedKit finds the package as Node would: in the node_modules of the folder, then of the folders above it that the fence opens.
func installedKit(f *fence) (version string, notes []string) {
	for at := f.root; ; at = filepath.Dir(at) {
		var pkg struct {
			Version string `json:"version"`
		}
		name := filepath.Join(at, "node_modules", orchestratorPackage, "package.json")
		if real, err := f.real(name); err == nil {
			err := f.json(real, &pkg)
			if m := exactVersion.FindStringSubmatch(pkg.Version); err == nil && m != nil {
				return m[1], nil
			}
			why := fmt.Sprintf("its version %q is none", clip(pkg.Version))
			if err != nil {
				why = reason(err).Error()
			}
			notes = append(notes, fmt.Sprintf("%s says no version: %s", name, why))
		}
		if at == filepath.Dir(at) {
			return "", notes
		}
	}
}

// json reads a small JSON file of an open place.
func (f *fence) json(name string, into any) error {
	text, err := f.open(name, maxPackageJSON)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
