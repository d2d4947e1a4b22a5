package config

import (
	"encoding/json"
	"path/filepath"
	"regexp"
)

const orchestratorPackage = "@jr2/orchestrator"

// exactVersion is a version, not a range: npm's own words for "any" and "newest" say nothing.
var exactVersion = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$`)

// kitVersion finds the version of @jr2/orchestrator: the installed one, else the exact one that package.json asks for, else the
// given one.
func kitVersion(f *fence, given string) string {
	for at := f.root; ; at = filepath.Dir(at) {
		var pkg struct {
			Version string `json:"version"`
		}
		name := filepath.Join(at, "node_modules", orchestratorPackage, "package.json")
		if real, err := filepath.EvalSymlinks(name); err == nil && f.json(real, &pkg) && exactVersion.MatchString(pkg.Version) {
			return exactVersion.FindStringSubmatch(pkg.Version)[1]
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	var pkg struct {
		Dependencies    map[string]string `json:"dependencies"`
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if f.json(filepath.Join(f.root, "package.json"), &pkg) {
		for _, deps := range []map[string]string{pkg.Dependencies, pkg.DevDependencies} {
			if m := exactVersion.FindStringSubmatch(deps[orchestratorPackage]); m != nil {
				return m[1]
			}
		}
	}
	return given
}

// json reads a small JSON file of an open place; false when it is not there or is no JSON of that shape.
func (f *fence) json(name string, into any) bool {
	text, err := f.open(name, maxPackageJSON)
	return err == nil && json.Unmarshal(text, into) == nil
}
