package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A decoder walks a configuration as data and keeps the first problem.
type decoder struct {
	file  string
	err   *FieldError
	notes []string
}

// A field is a value of the configuration and where it stands. A present field may hold null.
type field struct {
	d       *decoder
	path    string
	hint    string
	value   any
	present bool
}

// refuse keeps the first problem; the ones after it are most often its echo.
func (f field) refuse(format string, args ...any) {
	if f.d.err == nil {
		f.d.err = &FieldError{File: f.d.file, Path: f.path, Problem: fmt.Sprintf(format, args...), Hint: f.hint}
	}
}

func (f field) want(kind string) { f.refuse("want %s, got %s", kind, kindOf(f.value)) }

// kindOf names a value as an author knows it. What is no data was spelled by recorder/plain.js.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "list"
	case map[string]any:
		if what, ok := v[notData].(string); ok && len(v) == 1 {
			return clip(what)
		}
		return "object"
	}
	return "unknown"
}

const notData = "jr2:not-data"

func isObject(v any) bool { return kindOf(v) == "object" }

// object gives the entries of an object; nil when it is absent or was refused.
func (f field) object() map[string]any {
	if !f.present {
		return nil
	}
	if !isObject(f.value) {
		f.want("object")
		return nil
	}
	return f.value.(map[string]any)
}

// known refuses, or notes, the first key that is none of keys.
func (f field) known(strict bool, keys ...string) {
	for _, key := range sortedKeys(f.object()) {
		if slices.Contains(keys, key) {
			continue
		}
		if strict {
			f.refuse("unrecognized key %q", clip(key))
			return
		}
		at := "the configuration"
		if f.path != "" {
			at = f.path
		}
		f.d.notes = append(f.d.notes, fmt.Sprintf("%s: %s has the key %q, which means nothing here — %s", f.d.file, at, clip(key), strings.Join(keys, ", ")))
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// at gives a property of an object.
func (f field) at(key string) field {
	child := field{d: f.d, hint: f.hint, path: joinPath(f.path, key)}
	if isObject(f.value) {
		child.value, child.present = f.value.(map[string]any)[key]
	}
	return child
}

func joinPath(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(clip(key)) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// hinted gives the field with another hint for itself and what is below.
func (f field) hinted(hint string) field {
	f.hint = hint
	return f
}

// items gives the entries of a list.
func (f field) items() []field {
	if !f.present {
		return nil
	}
	list, ok := f.value.([]any)
	if !ok {
		f.want("list")
		return nil
	}
	out := make([]field, len(list))
	for i, v := range list {
		out[i] = field{d: f.d, hint: f.hint, path: fmt.Sprintf("%s[%d]", f.path, i), value: v, present: true}
	}
	return out
}

// str gives a string, or "" when it is absent or was refused.
func (f field) str() string {
	if s := f.optional(); s != nil {
		return *s
	}
	return ""
}

// optional gives a string and keeps absent apart from empty.
func (f field) optional() *string {
	if !f.present {
		return nil
	}
	s, ok := f.value.(string)
	if !ok {
		f.want("string")
		return nil
	}
	return &s
}

func (f field) secret() Secret {
	if s := f.optional(); s != nil {
		return NewSecret(*s)
	}
	return Secret{}
}

func (f field) boolean() *bool {
	if !f.present {
		return nil
	}
	b, ok := f.value.(bool)
	if !ok {
		f.want("boolean")
		return nil
	}
	return &b
}

// count gives a whole number that is more than zero; 0 when absent.
func (f field) count() int64 {
	if !f.present {
		return 0
	}
	number, ok := f.value.(json.Number)
	if !ok {
		f.want("number")
		return 0
	}
	if len(number) > 30 {
		f.refuse("want a whole number above zero")
		return 0
	}
	r, ok := new(big.Rat).SetString(number.String())
	if !ok || !r.IsInt() || !r.Num().IsInt64() || r.Sign() <= 0 {
		f.refuse("want a whole number above zero, got %s", number)
		return 0
	}
	return r.Num().Int64()
}

// strings gives a list of strings; nil only when it is absent.
func (f field) strings() []string {
	if !f.present {
		return nil
	}
	out := []string{}
	for _, item := range f.items() {
		out = append(out, item.str())
	}
	return out
}

// stringMap gives a map of strings.
func (f field) stringMap() map[string]string {
	if !f.present {
		return nil
	}
	out := map[string]string{}
	for _, key := range sortedKeys(f.object()) {
		out[key] = f.at(key).str()
	}
	return out
}

// into reads a part whose shape is Kubernetes' own; its types and keys are checked by the API's Go types.
func (f field) into(target any) {
	if f.object() == nil {
		return
	}
	text, err := json.Marshal(f.value)
	if err != nil {
		f.refuse("%v", err)
		return
	}
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.DisallowUnknownFields()
	err = reader.Decode(target)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		at := f
		if wrong.Field != "" {
			at.path += "." + wrong.Field
		}
		at.refuse("want %s, got %s", goKind(wrong), strings.Replace(strings.Replace(wrong.Value, "bool", "boolean", 1), "array", "list", 1))
	default:
		f.refuse("%s", strings.Replace(strings.TrimPrefix(err.Error(), "json: "), "unknown field", "unrecognized key", 1))
	}
}

func goKind(wrong *json.UnmarshalTypeError) string {
	switch wrong.Type.Kind().String() {
	case "string":
		return "string"
	case "bool":
		return "boolean"
	case "slice":
		return "list"
	case "struct", "map", "ptr":
		return "object"
	}
	return "number"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
