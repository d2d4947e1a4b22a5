package images

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A Record is the map of images that a cluster runs: the jr2-images ConfigMap and the jr2.dev/images annotation hold it as JSON.
type Record struct {
	Harness      string `json:"harness,omitempty"`
	Custodian    string `json:"custodian,omitempty"`
	Operator     string `json:"operator,omitempty"`
	Orchestrator string `json:"orchestrator,omitempty"`
	// Sandbox maps a key (DefaultKey or a content digest) to a ref.
	Sandbox map[string]string `json:"sandbox,omitempty"`
	// SandboxUser maps the same keys to the USER that the image declares: "" for none. An absent key means unknown.
	SandboxUser map[string]string `json:"sandboxUser,omitempty"`
}

// ParseRecord reads the JSON of a Record. Unknown fields are ignored, so that an older program reads a newer record.
func ParseRecord(text []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("the record of images is not readable: %w", err)
	}
	return &r, nil
}

// Marshal is the record's JSON: two spaces of indent, keys in order, no final newline; equal records give equal bytes.
func (r Record) Marshal() ([]byte, error) { return json.MarshalIndent(r, "", "  ") }

// With returns a copy of r whose Sandbox maps hold exactly what was delivered.
func (r Record) With(delivered map[string]Delivered) Record {
	r.Sandbox, r.SandboxUser = map[string]string{}, map[string]string{}
	for key, d := range delivered {
		r.Sandbox[key], r.SandboxUser[key] = d.Ref, d.User
	}
	return r
}

// Refs are all refs that r names, sorted, each once. A nil Record names none.
func (r *Record) Refs() []string {
	if r == nil {
		return nil
	}
	refs := append(slices.Collect(maps.Values(r.Sandbox)), r.Harness, r.Custodian, r.Operator, r.Orchestrator)
	slices.Sort(refs)
	return slices.DeleteFunc(slices.Compact(refs), func(ref string) bool { return ref == "" })
}

// Replaced are the refs of the generation before next, which a sweep keeps: those of r that next no longer names; when it names them all, what
// r itself had replaced, which is before. Results are sorted, and empty for none.
func (r *Record) Replaced(before []string, next *Record) []string {
	now := next.Refs()
	gone := func(refs []string) []string {
		return slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return slices.Contains(now, ref) })
	}
	if replaced := gone(r.Refs()); len(replaced) > 0 {
		return replaced
	}
	before = gone(before)
	slices.Sort(before)
	return slices.Compact(before)
}

// find says whether the record proves that ref was delivered, and with which USER. The key's own entry comes first; the same ref
// under another key proves it as well, since a ref names content.
func (r *Record) find(key, ref string) (user string, ok bool) {
	if r == nil {
		return "", false
	}
	if r.Sandbox[key] == ref {
		if user, ok = r.SandboxUser[key]; ok {
			return user, true
		}
	}
	for _, other := range slices.Sorted(maps.Keys(r.Sandbox)) {
		if r.Sandbox[other] == ref {
			if user, ok = r.SandboxUser[other]; ok {
				return user, true
			}
		}
	}
	return "", false
}
