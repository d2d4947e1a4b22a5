package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What a record holds is written by whoever may edit ConfigMaps in the set's namespace. It is read as what a stranger sent: it is a hint where to
// look, what it says is bounded, and what can't be is passed over.
const (
	// mostParts bounds the ConfigMaps of one inventory: 50 MiB of records, which are some hundred thousand objects.
	mostParts = 64
	// mostName bounds the name of an object. Those of roles have no bound of their own.
	mostName = 512
	// mostNote bounds a hash, a UID or a state.
	mostNote = 128
	// mostRelease bounds the release, and leaves room for records beside it.
	mostRelease = 256 << 10
)

var errTooManyRecords = errors.New("the record of the set would be larger than what is read of one; divide the set into several")

// namesSomething says that there can be such an object.
func (r record) namesSomething() bool {
	word := func(s string) bool { return len(validation.IsDNS1123Subdomain(strings.ToLower(s))) == 0 }
	printable := !strings.ContainsFunc(r.Name, func(c rune) bool { return !unicode.IsPrint(c) })
	return r.Name != "" && len(r.Name) <= mostName && printable && len(content.IsPathSegmentName(r.Name)) == 0 && word(r.Kind) &&
		(r.Version == "" || word(r.Version)) && (r.Group == "" || word(r.Group)) && (r.Namespace == "" || word(r.Namespace))
}

// trimmed is the record without notes that no run made. Without a note the object is looked at as one that was not seen.
func (r record) trimmed() record {
	if len(r.UID) > mostNote {
		r.UID = ""
	}
	for _, note := range []*string{&r.Want, &r.Entry, &r.Seen} {
		if len(*note) > mostNote || strings.ContainsFunc(*note, unicode.IsControl) {
			*note = ""
		}
	}
	if !isKeepMark(r.Keep) {
		r.Keep = ""
	}
	return r
}

// isKeepMark says that keepMarkOf may have given the text.
func isKeepMark(text string) bool {
	key, value, _ := strings.Cut(text, ": ")
	for _, mark := range keepMarks() {
		if mark.key == key && len(value) < mostNote && mark.in(value) == value {
			return true
		}
	}
	return false
}

// plausibleParts refuses a list of parts that no run wrote, before the first of them is read.
func (i *inventory) plausibleParts(names []string) error {
	if len(names) > mostParts {
		return fmt.Errorf("the inventory does not read: it names %d ConfigMaps as its parts, and %d are the most", len(names), mostParts)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if !strings.HasPrefix(name, InventoryName(i.set.Name)+"-") || len(validation.IsDNS1123Subdomain(name)) > 0 || seen[name] {
			return noPart(name)
		}
		seen[name] = true
	}
	return nil
}

func noPart(name string) error {
	return fmt.Errorf("the inventory does not read: it names the ConfigMap %.80q as a part of it, which is none", name)
}

// readRelease reads what is kept of the last release; nil where that is nothing.
func readRelease(raw string) (*release, error) {
	if raw == "" {
		return nil, nil
	}
	if len(raw) > mostRelease {
		return nil, fmt.Errorf("the release in the inventory does not read: it has %d bytes", len(raw))
	}
	var rel *release
	if err := json.Unmarshal([]byte(raw), &rel); err != nil {
		return nil, fmt.Errorf("the release in the inventory does not read: %w", err)
	}
	if rel != nil && (rel.Number < 0 || rel.Number > mostReleases || len(rel.Salt) > mostNote || len(rel.Sum) > mostNote) {
		return nil, errors.New("the release in the inventory does not read: its numbers cannot be")
	}
	return rel, nil
}

// mostReleases bounds the number of a release, so that there is a next one.
const mostReleases = 1 << 40
