package images

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// Roots are the refs that something in a cluster needs. The zero value holds none.
type Roots struct {
	named  map[string]bool
	spared map[string]bool
	local  LocalRegistry
}

// Add makes refs needed, in whatever spelling they come. What is no ref counts as it is written.
func (r *Roots) Add(refs ...string) {
	if r.named == nil {
		r.named = map[string]bool{}
	}
	for _, ref := range refs {
		if ref == "" {
			continue
		}
		for _, spelled := range spellings(ref) {
			r.named[spelled] = true
		}
	}
}

// AddMap makes all refs of an image map needed: every string at its top level and one level down, so that a map of a newer version
// counts too. Text that is no JSON object is an error: nothing may be swept then.
func (r *Roots) AddMap(text []byte) error {
	var top map[string]any
	if err := json.Unmarshal(text, &top); err != nil {
		return fmt.Errorf("the image map is not readable: %w", err)
	}
	for _, value := range top {
		switch value := value.(type) {
		case string:
			r.Add(value)
		case map[string]any:
			for _, inner := range value {
				if ref, ok := inner.(string); ok {
					r.Add(ref)
				}
			}
		}
	}
	return nil
}

// AddList makes all refs of a JSON list of them needed. Anything else is an error: nothing may be swept then.
func (r *Roots) AddList(text []byte) error {
	var refs []string
	if err := json.Unmarshal(text, &refs); err != nil {
		return fmt.Errorf("the list of replaced images is not readable: %w", err)
	}
	r.Add(refs...)
	return nil
}

// Spare keeps every image that was built for an Instance, and those that do not say for which: nobody knows what that Instance needs.
func (r *Roots) Spare(instance string) {
	if r.spared == nil {
		r.spared = map[string]bool{}
	}
	r.spared[instance] = true
}

func (r *Roots) spares(image Stored) bool {
	return len(r.spared) > 0 && (len(image.Instances) == 0 || slices.ContainsFunc(image.Instances, func(name string) bool { return r.spared[name] }))
}

// Alias says by which other name nodes know a registry: a ref that is named by it is needed under ours too.
func (r *Roots) Alias(local LocalRegistry) { r.local = local }

// Need says whether ref is needed.
func (r *Roots) Need(ref string) bool {
	for _, spelled := range spellings(ref) {
		if r.named[spelled] {
			return true
		}
	}
	if pull := r.local.PullName(ref); pull != ref {
		for _, spelled := range spellings(pull) {
			if r.named[spelled] {
				return true
			}
		}
	}
	return false
}

// spellings are the forms in which a ref counts: in full, with Docker Hub spelled out, by its tag alone and by its digest alone. Whole refs
// are compared, never prefixes: names of Instances can't be told apart in them.
func spellings(ref string) []string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return []string{strings.TrimPrefix(ref, "docker.io/library/")}
	}
	named = reference.TagNameOnly(named) // without tag and digest it means latest
	out := []string{named.String()}
	if digested, ok := named.(reference.Digested); ok {
		out = append(out, named.Name()+"@"+digested.Digest().String())
		if tagged, ok := named.(reference.Tagged); ok {
			out = append(out, named.Name()+":"+tagged.Tag())
		}
	}
	return out
}
