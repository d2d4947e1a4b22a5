package config

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A decoder walks a configuration as data and keeps what is wrong with it.
type decoder struct {
	file string
	errs []error
	// unread are the paths of fields whose values could not be taken.
	unread []string
	notes  []string
}

// A field is a value of the configuration and where it stands. A present field may hold null.
type field struct {
	d       *decoder
	path    string
	hint    string
	value   any
	present bool
	// echo says that the value around it was refused as a whole, so that nothing is to be told of this one.
	echo bool
}

// refuse keeps a problem of a value that can't be taken.
func (f field) refuse(format string, args ...any) {
	f.tell(format, args...)
	if !f.echo {
		f.d.unread = append(f.d.unread, f.path)
	}
}

// tell keeps a problem that leaves the value readable.
func (f field) tell(format string, args ...any) {
	if !f.echo {
		f.d.errs = append(f.d.errs, &FieldError{File: f.d.file, Path: f.path, Problem: fmt.Sprintf(format, args...), Hint: f.hint})
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

// known refuses, or notes, each key that is none of keys, and says whether there was none.
func (f field) known(strict bool, keys ...string) bool {
	all := true
	for _, key := range sortedKeys(f.object()) {
		if slices.Contains(keys, key) {
			continue
		}
		all = false
		if strict {
			f.tell("unrecognized key %q", clip(key))
			continue
		}
		at := "the configuration"
		if f.path != "" {
			at = f.path
		}
		f.d.notes = append(f.d.notes, fmt.Sprintf("%s: %s has the key %q, which means nothing here — %s", f.d.file, at, clip(key), strings.Join(keys, ", ")))
	}
	return all
}

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// at gives a property of an object.
func (f field) at(key string) field {
	child := field{d: f.d, hint: f.hint, path: joinPath(f.path, key), echo: f.echo || f.present && !isObject(f.value)}
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
		out[i] = field{d: f.d, hint: f.hint, path: fmt.Sprintf("%s[%d]", f.path, i), value: v, present: true, echo: f.echo}
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
	return f.whole("a whole number above zero", 1)
}

// whole gives a whole number that is not less than least; 0 when it is absent or was refused. what says in words which numbers are wanted.
func (f field) whole(what string, least int64) int64 {
	if !f.present {
		return 0
	}
	number, ok := f.value.(json.Number)
	if !ok {
		f.want("number")
		return 0
	}
	r := new(big.Rat)
	if len(number) <= 30 { // a longer one would have to be expanded
		r, ok = r.SetString(number.String())
	}
	if !ok || len(number) > 30 || !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() < least {
		f.refuse("want %s, got %s", what, clip(number.String()))
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

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
