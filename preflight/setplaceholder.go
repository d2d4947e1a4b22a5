package preflight

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	// A word that nobody keeps, standing alone: "REPLACE_ME", "postgres://app:changeme@db", "__CHANGE_ME__", "REPLACE_ME_WITH_A_KEY". In the
	// middle of another word it is that word ("DONT_CHANGE_ME", "exchangement").
	placeholderWord = regexp.MustCompile(`(?i)(?:^|__|[^A-Za-z0-9_-])((?:replace|change)[_-]?me)(?:$|[^A-Za-z0-9])`)
	// In a name, which has only letters, digits and separators, any separator ends a word: "app:v1-REPLACE_ME".
	placeholderInName = regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])((?:replace|change)[_-]?me)(?:$|[^A-Za-z0-9])`)
	// A whole value in angle brackets, in words: "<your password>".
	placeholderWhole = regexp.MustCompile(`^\s*(<[A-Za-z][A-Za-z0-9_. -]+>)\s*$`)
	// A part of an address in angle brackets, where they are not allowed to stand for themselves: "https://<host>/".
	placeholderInURL = regexp.MustCompile(`^[^\s<]*://[^\s]*(<[A-Za-z][A-Za-z0-9_.-]+>)`)
	// A host or an image cannot hold an angle bracket.
	placeholderAngle = regexp.MustCompile(`<[^<>]*>`)
	commentLine      = regexp.MustCompile(`^\s*(#|//|;|--)`)
)

// placeholder returns what a template left in a value, or "". Comments of a value of several lines do not count.
func placeholder(value string) string {
	for _, shape := range []*regexp.Regexp{placeholderWhole, placeholderInURL} {
		if m := shape.FindStringSubmatch(value); m != nil {
			return m[1]
		}
	}
	lines := strings.Split(value, "\n")
	for _, line := range lines {
		if len(lines) > 1 && commentLine.MatchString(line) {
			continue
		}
		if m := placeholderWord.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

// placeholderName is placeholder for the name of an image or of a host.
func placeholderName(name string) string {
	if m := placeholderInName.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return placeholderAngle.FindString(name)
}

// Placeholders finds values that a template left to be filled in: REPLACE_ME, CHANGEME and their spellings, and <words in angle brackets>
// as a whole value or in an address. In a Secret and in the name of an image they refuse; anywhere else, such as a host or a
// ConfigMap, they warn. A Secret's value is never said, only its key. What is rendered later by a program of the cluster ("${HOST}",
// "{{ .Host }}") is no placeholder.
func Placeholders(objs []*unstructured.Unstructured) []Finding {
	var findings []Finding
	for _, o := range objs {
		switch gvk := o.GroupVersionKind(); {
		case gvk.Group == "apiextensions.k8s.io": // a schema describes values and holds none
		case gvk.Group == "" && gvk.Kind == "Secret":
			findings = append(findings, secretPlaceholders(o)...)
			findings = append(findings, otherPlaceholders(o, "data", "stringData")...)
		default:
			findings = append(findings, otherPlaceholders(o, "binaryData")...)
		}
	}
	return findings
}

func secretPlaceholders(o *unstructured.Unstructured) []Finding {
	found := map[string]bool{}
	for _, field := range []string{"data", "stringData"} {
		values, _ := o.Object[field].(map[string]any)
		for key, v := range values {
			text, _ := v.(string)
			if field == "data" {
				raw, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					continue
				}
				text = string(raw)
			}
			if utf8.ValidString(text) && placeholder(text) != "" {
				found[key] = true
			}
		}
	}
	var findings []Finding
	for _, key := range slices.Sorted(maps.Keys(found)) {
		findings = append(findings, Finding{
			Severity: Refuse, Code: CodePlaceholder, Object: objectOf(o),
			Message: fmt.Sprintf("refusing: %s holds a placeholder under the key %s, which would replace the real value — write the real value there, or leave "+
				"the Secret out of the set. Nothing was applied.", objectOf(o), key),
			Fix: fmt.Sprintf("write the real value of %s, or leave the Secret out of the set", key),
		})
	}
	return findings
}

// otherPlaceholders walks the strings of an object, without the top fields that are named.
func otherPlaceholders(o *unstructured.Unstructured, without ...string) []Finding {
	var findings []Finding
	images := ""
	if path := podTemplate(o); path != nil {
		images = strings.Join(append(slices.Clone(path), "spec"), ".") + "."
	}
	eachString(o.Object, "", func(path, value string) {
		top, _, _ := strings.Cut(path, ".")
		if slices.Contains(without, top) || path == "apiVersion" || path == "kind" ||
			path == "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration" {
			return
		}
		if images != "" && isImagePath(strings.TrimPrefix(path, images)) {
			if placeholderName(value) != "" {
				findings = append(findings, Finding{
					Severity: Refuse, Code: CodePlaceholder, Object: objectOf(o),
					Message: fmt.Sprintf("refusing: %s: %s is %q, which is a placeholder — write the image's real name, pinned by digest. Nothing was applied.", objectOf(o), path, value),
					Fix:     "write the real image at " + path,
				})
			}
			return
		}
		left := placeholder(value)
		if left == "" && isHostPath(path) {
			left = placeholderName(value)
		}
		if left != "" {
			findings = append(findings, Finding{
				Severity: Warn, Code: CodePlaceholder, Object: objectOf(o),
				Message: fmt.Sprintf("%s: %s holds the placeholder %s — write the real value there", objectOf(o), path, left),
				Fix:     "write the real value at " + path,
			})
		}
	})
	return findings
}

var (
	imagePath = regexp.MustCompile(`^((initContainers|containers|ephemeralContainers)\[\d+\]\.image|volumes\[\d+\]\.image\.reference)$`)
	hostPath  = regexp.MustCompile(`(?i)(^|[.])(host|hosts\[\d+\]|hostname|hostnames\[\d+\]|externalName|dnsNames\[\d+\])$`)
)

func isImagePath(path string) bool { return imagePath.MatchString(path) }

func isHostPath(path string) bool { return hostPath.MatchString(path) }

// eachString visits the strings of a value in a fixed order, with the path of each.
func eachString(v any, path string, visit func(path, value string)) {
	switch v := v.(type) {
	case string:
		visit(path, v)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := k
			if path != "" {
				at = path + "." + k
			}
			eachString(v[k], at, visit)
		}
	case []any:
		for i, x := range v {
			eachString(x, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}
