package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jr2.dev/jr2/apply"
)

// recordResource is where the records of a set are.
func recordResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

// editRecords changes the entries of a set's inventory. False when there is none.
func (h *history) editRecords(ctx context.Context, side *side, change func([]any) []any) bool {
	at := h.strange.Resource(recordResource()).Namespace(side.place)
	o, err := at.Get(ctx, apply.InventoryName(side.name), metav1.GetOptions{})
	if err != nil {
		return false
	}
	const key = "inventory.json"
	text, _, _ := unstructured.NestedString(o.Object, "data", key)
	var file map[string]any
	h.must(json.Unmarshal([]byte(text), &file))
	entries, _ := file["objects"].([]any)
	file["objects"] = change(entries)
	raw, err := json.Marshal(file)
	h.must(err)
	h.must(unstructured.SetNestedField(o.Object, string(raw), "data", key))
	_, err = at.Update(ctx, o, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	h.must(err)
	return true
}

// forgesRecords lists objects in the inventory of a set that the set never made.
func (h *history) forgesRecords(ctx context.Context, v view) string {
	side := h.sides[h.random.IntN(len(h.sides))]
	var listed []string
	done := h.editRecords(ctx, side, func(entries []any) []any {
		for range 1 + h.random.IntN(3) {
			s := h.one(v, func(s *sight, t *thing) bool { return !s.deleting && t.owner != side.id() })
			if s == nil || slices.Contains(listed, h.say(s.slot)) {
				continue
			}
			entry := h.entry(s)
			if h.chance(70) {
				entry["uid"] = string(s.uid)
				h.things[s.uid].listed = append(h.things[s.uid].listed, side)
			}
			if h.chance(50) {
				entry["made"] = true
			}
			entries, listed = append(withoutEntry(entries, entry), entry), append(listed, h.say(s.slot))
		}
		return entries
	})
	if !done || len(listed) == 0 {
		return ""
	}
	return fmt.Sprintf("lists in the records of the set %s: %s", side.name, strings.Join(listed, ", "))
}

func (h *history) entry(s *sight) map[string]any {
	gvk := s.object.GroupVersionKind()
	return map[string]any{
		"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind,
		"namespace": s.object.GetNamespace(), "name": s.object.GetName(),
	}
}

// withoutEntry leaves out the entry of the same object.
func withoutEntry(entries []any, like map[string]any) []any {
	return slices.DeleteFunc(entries, func(e any) bool {
		m, _ := e.(map[string]any)
		return !slices.ContainsFunc([]string{"group", "kind", "namespace", "name"}, func(key string) bool {
			return text(m[key]) != text(like[key])
		})
	})
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// datesRecords turns records into what earlier releases wrote: the namespace of the manifest stands there for
// cluster-scoped kinds too.
func (h *history) datesRecords(ctx context.Context, _ view) string {
	side := h.sides[h.random.IntN(len(h.sides))]
	changed := 0
	done := h.editRecords(ctx, side, func(entries []any) []any {
		for _, e := range entries {
			m, _ := e.(map[string]any)
			for _, kind := range h.kinds {
				if kind.cluster && m["kind"] == kind.Kind {
					m["namespace"] = h.places[h.random.IntN(len(h.places))]
					changed++
				}
			}
		}
		return entries
	})
	if !done || changed == 0 {
		return ""
	}
	return fmt.Sprintf("turns %d records of the set %s into those of an earlier release", changed, side.name)
}
