package config

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// into reads a part whose shape is Kubernetes' own. All that does not fit the API's Go type is told by its path; then nothing is read. null is
// refused as everywhere, although the API server takes it for absent.
func (f field) into(target any) {
	if !f.present {
		return
	}
	before := len(f.d.errs)
	f.fits(reflect.TypeOf(target).Elem())
	if len(f.d.errs) > before {
		f.d.unread = append(f.d.unread, f.path) // half of it would have the rest look wrong
		return
	}
	text, err := json.Marshal(f.value)
	if err == nil {
		err = json.Unmarshal(text, target)
	}
	if err != nil {
		f.refuse("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
}

// fits refuses what a Go type of the API does not take.
func (f field) fits(t reflect.Type) {
	if !f.present {
		return
	}
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		f.fitsQuantity()
		return
	case t.Kind() == reflect.Pointer:
		f.fits(t.Elem())
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		types := properties(t)
		f.known(true, sortedKeys(types)...)
		for _, key := range sortedKeys(types) {
			f.at(key).fits(types[key])
		}
	case reflect.Slice:
		for _, item := range f.items() {
			item.fits(t.Elem())
		}
	case reflect.String:
		f.optional()
	case reflect.Bool:
		f.boolean()
	case reflect.Int32, reflect.Int64:
		f.whole("a whole number", math.MinInt64)
	default:
		f.refuse("has a shape that nobody here can check")
	}
}

// fitsQuantity takes a quantity of the API: a text or a number.
func (f field) fitsQuantity() {
	text := fmt.Sprint(f.value)
	if _, isNumber := f.value.(json.Number); !isNumber {
		if text = f.str(); text == "" && kindOf(f.value) != "string" {
			return
		}
	}
	if _, err := resource.ParseQuantity(text); err != nil || len(text) > maxQuantityText {
		f.refuse("%q is no quantity, such as 1, \"500m\" or \"2Gi\"", clip(text))
	}
}

// properties are those that JSON knows a struct by, with those of the structs that it embeds.
func properties(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		property := t.Field(i)
		name, _, _ := strings.Cut(property.Tag.Get("json"), ",")
		switch {
		case property.Anonymous && name == "":
			for name, inner := range properties(property.Type) {
				out[name] = inner
			}
		case name != "" && name != "-":
			out[name] = property.Type
		}
	}
	return out
}
