package config

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// What a look into exports or imports came to.
type lookupStatus int

const (
	statusUndefined lookupStatus = iota // no condition holds
	statusNull                          // said to be closed
	statusInvalid                       // a target that may not be
	statusRefused                       // an import that may not be
	statusExact                         // the file is named in whole
	statusInexact                       // by a key that ends with a slash, an older form: extensions may be left out
	statusPackage                       // another package: only imports may name one
)

// A lookup is the target of a key: "/…" in the package, or the name of another.
type lookup struct {
	target string
	status lookupStatus
}

// lookUp finds the target of a key in a table of exports ("." or "./…") or of imports ("#…").
// Source: https://nodejs.org/api/esm.html#resolution-algorithm-specification, PACKAGE_EXPORTS_RESOLVE and below.
func (v *jsonValue) lookUp(key string, conditions []string, inner bool) lookup {
	switch {
	case inner && v.kind != jsonObject:
		return lookup{status: statusInvalid}
	case !inner && !v.hasPaths():
		if key != "." {
			return lookup{status: statusNull}
		}
		return v.target("", conditions, false, false)
	case !strings.HasSuffix(key, "/") && !strings.Contains(key, "*"):
		if exact := v.field(key); exact != nil {
			return exact.target("", conditions, false, inner)
		}
	}
	if !inner && key == "." {
		return lookup{status: statusNull}
	}
	for _, pattern := range v.patterns() {
		before, after, starred := strings.Cut(pattern, "*")
		switch {
		case !strings.HasPrefix(key, before):
		case !starred:
			found := v.field(pattern).target(key[len(before):], conditions, false, inner)
			if found.status == statusExact {
				found.status = statusInexact
			}
			return found
		case after == "" || strings.HasSuffix(key, after) && len(key) >= len(pattern):
			return v.field(pattern).target(key[len(before):len(key)-len(after)], conditions, true, inner)
		}
	}
	return lookup{status: statusNull}
}

// hasPaths says whether an object's keys are paths and not conditions.
func (v *jsonValue) hasPaths() bool {
	return v.kind == jsonObject && len(v.keys) > 0 && strings.HasPrefix(v.keys[0], ".")
}

// patterns are the keys that stand for several imports, the most specific first: by the length of what is before the star, then the whole
// length.
func (v *jsonValue) patterns() []string {
	var patterns []string
	for _, key := range v.keys {
		if strings.Contains(key, "*") || strings.HasSuffix(key, "/") {
			patterns = append(patterns, key)
		}
	}
	base := func(pattern string) int {
		if star := strings.Index(pattern, "*"); star >= 0 {
			return star + 1
		}
		return len(pattern)
	}
	slices.SortStableFunc(patterns, func(a, b string) int { return cmp.Or(base(b)-base(a), len(b)-len(a)) })
	return patterns
}

// target resolves a target. rest is what the star, or the slash at the end, of the key stood for.
func (v *jsonValue) target(rest string, conditions []string, starred, inner bool) lookup {
	switch v.kind {
	case jsonString:
		return v.textTarget(rest, starred, inner)
	case jsonObject:
		for i, condition := range v.keys {
			if slices.Contains(conditions, condition) {
				if found := v.items[i].target(rest, conditions, starred, inner); found.status != statusUndefined {
					return found
				}
			}
		}
		return lookup{status: statusUndefined}
	case jsonArray:
		last := lookup{status: statusUndefined}
		if len(v.items) == 0 {
			last.status = statusNull
		}
		for i := range v.items {
			found := v.items[i].target(rest, conditions, starred, inner)
			switch found.status {
			case statusUndefined:
			case statusInvalid, statusNull:
				last = lookup{status: found.status}
			default:
				return found
			}
		}
		return last
	case jsonNull:
		return lookup{status: statusNull}
	}
	return lookup{status: statusInvalid}
}

func (v *jsonValue) textTarget(rest string, starred, inner bool) lookup {
	if !starred && rest != "" && !strings.HasSuffix(v.text, "/") {
		return lookup{status: statusRefused}
	}
	filled := func(target string) string {
		if starred {
			return strings.ReplaceAll(target, "*", rest)
		}
		return target + rest
	}
	if !strings.HasPrefix(v.text, "./") {
		if inner && !strings.HasPrefix(v.text, "../") && !strings.HasPrefix(v.text, "/") {
			return lookup{filled(v.text), statusPackage}
		}
		return lookup{status: statusInvalid}
	}
	if climbs(v.text) {
		return lookup{status: statusInvalid}
	}
	if climbs(rest) {
		return lookup{status: statusRefused}
	}
	inPackage := path.Join("/", v.text) // a slash at the end goes
	if starred {
		return lookup{strings.ReplaceAll(inPackage, "*", rest), statusExact}
	}
	return lookup{path.Join(inPackage, rest), statusExact}
}

// climbs says whether a part of a path after the first leads out of where a target may lie.
func climbs(target string) bool {
	parts := strings.FieldsFunc(target, func(c rune) bool { return c == '/' || c == '\\' })
	if first := strings.IndexAny(target, "/\\"); first != 0 && len(parts) > 0 {
		parts = parts[1:]
	}
	return slices.ContainsFunc(parts, func(part string) bool { return part == "." || part == ".." || part == modulesDir })
}
