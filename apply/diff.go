package apply

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A FieldChange is one field that a write would change.
type FieldChange struct {
	// Path is written as the server writes fields of conflicts, without the first dot: spec.template.spec.containers[name="web"].image.
	Path string `json:"path"`
	Old  Value  `json:"old,omitzero"`
	New  Value  `json:"new,omitzero"`
}

// A differ collects the fields in which two objects differ.
type differ struct {
	secret  bool
	changes []FieldChange
}

// diff compares an object with what it would become, both as the server gives them, so that values that the server holds for equal
// are. What only the server or this engine notes about an object is left out. Values of a Secret are hidden.
func diff(before, after *unstructured.Unstructured) []FieldChange {
	d := &differ{secret: after.GroupVersionKind().Group == "" && after.GetKind() == "Secret"}
	before, after = withoutNotes(before), withoutNotes(after)
	if d.secret { // so that each key is told by its name
		for _, u := range []*unstructured.Unstructured{before, after} {
			if _, ok := u.Object["data"].(map[string]any); !ok {
				u.Object["data"] = map[string]any{}
			}
		}
	}
	d.maps(nil, before.Object, after.Object)
	return d.changes
}

// withoutNotes is a copy of the object without what is noted about it.
func withoutNotes(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	for _, f := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", wantAnnotation)
	if a, ok := dig(o.Object, "metadata", "annotations").(map[string]any); ok && len(a) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return o
}

// values compares two present values.
func (d *differ) values(path []string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	b, bok := before.(map[string]any)
	a, aok := after.(map[string]any)
	if bok && aok {
		d.maps(path, b, a)
		return
	}
	bl, bok := before.([]any)
	al, aok := after.([]any)
	if bok && aok {
		d.lists(path, bl, al)
		return
	}
	d.add(path, d.value(path, before), d.value(path, after))
}

func (d *differ) maps(path []string, before, after map[string]any) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		at := append(slices.Clone(path), pathStep(k, path))
		b, was := before[k]
		a, is := after[k]
		d.either(at, b, was, a, is)
	}
}

// either compares two values of which one may be absent.
func (d *differ) either(path []string, before any, was bool, after any, is bool) {
	switch {
	case was && is:
		d.values(path, before, after)
	case was:
		d.add(path, d.value(path, before), Value{})
	case is:
		d.add(path, Value{}, d.value(path, after))
	}
}

// lists compares items of the same key, or of the same index where the items have none.
func (d *differ) lists(path []string, before, after []any) {
	last := len(path) - 1
	at := func(index string) []string {
		p := slices.Clone(path)
		p[last] += "[" + index + "]"
		return p
	}
	if b, a, ok := keyed(before, after); ok {
		found := len(d.changes)
		var keys []string
		for _, k := range append(b.keys, a.keys...) {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			bv, was := b.items[k]
			av, is := a.items[k]
			d.either(at(k), bv, was, av, is)
		}
		if len(d.changes) > found {
			return
		} // else only their order differs
	}
	for i := range max(len(before), len(after)) {
		var b, a any
		if i < len(before) {
			b = before[i]
		}
		if i < len(after) {
			a = after[i]
		}
		d.either(at(fmt.Sprint(i)), b, i < len(before), a, i < len(after))
	}
}

// A keyedList is a list of objects by the text of their keys.
type keyedList struct {
	keys  []string
	items map[string]any
}

// keyed finds the fields that tell the items of both lists apart, as the API's own lists have them.
func keyed(before, after []any) (b, a keyedList, ok bool) {
	for _, fields := range [][]string{{"name"}, {"mountPath"}, {"containerPort", "protocol"}, {"port", "protocol"}, {"key"}, {"type"}, {"topologyKey"}, {"ip"}} {
		b, ok = byKey(before, fields)
		if !ok {
			continue
		}
		if a, ok = byKey(after, fields); ok {
			return b, a, true
		}
	}
	return b, a, false
}

func byKey(list []any, fields []string) (keyedList, bool) {
	k := keyedList{items: map[string]any{}}
	for _, item := range list {
		var parts []string
		for _, f := range fields {
			v := dig(item, f)
			if v == nil {
				return k, false
			}
			parts = append(parts, f+"="+Value{data: v, state: valueShown}.String())
		}
		key := strings.Join(parts, ",")
		if _, ok := k.items[key]; ok {
			return k, false
		}
		k.keys = append(k.keys, key)
		k.items[key] = item
	}
	return k, true
}

// pathStep is a key as one step of a path: with a dot before it, or in brackets when it has dots of its own.
func pathStep(key string, path []string) string {
	switch {
	case strings.ContainsAny(key, `./"[]`) || key == "":
		return fmt.Sprintf("[%q]", key)
	case len(path) == 0:
		return key
	}
	return "." + key
}

func (d *differ) add(path []string, before, after Value) {
	d.changes = append(d.changes, FieldChange{Path: strings.Join(path, ""), Old: before, New: after})
}

// value hides what a Secret holds: all of it but its type and its metadata, and of that the annotations, because one of them may hold
// the whole once more, as that of kubectl apply does. The mark of the set is no secret.
func (d *differ) value(path []string, v any) Value {
	if !d.secret {
		return Value{data: v, state: valueShown}
	}
	at := strings.Join(path, "")
	shown := at == "type" || at == "immutable" || at == `metadata.annotations["`+SetAnnotation+`"]` ||
		path[0] == "metadata" && len(path) > 1 && path[1] != ".annotations"
	if shown {
		return Value{data: v, state: valueShown}
	}
	return Value{state: valueHidden}
}
