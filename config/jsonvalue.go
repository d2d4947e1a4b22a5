package config

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A jsonValue keeps the keys of objects in their order, which the conditions of a package's exports depend on.
type jsonValue struct {
	kind    jsonKind
	text    string
	boolean bool
	items   []jsonValue // of an array, and of an object beside keys
	keys    []string
}

type jsonKind int

const (
	jsonOther jsonKind = iota // a number
	jsonNull
	jsonBool
	jsonString
	jsonArray
	jsonObject
)

// maxJSONDepth bounds how deep a table of exports may nest.
const maxJSONDepth = 50

// UnmarshalJSON implements json.Unmarshaler.
func (v *jsonValue) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	return v.decode(decoder, 0)
}

func (v *jsonValue) decode(decoder *json.Decoder, depth int) error {
	if depth > maxJSONDepth {
		return errors.New("nested too deeply")
	}
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case nil:
		v.kind = jsonNull
	case bool:
		v.kind, v.boolean = jsonBool, token
	case string:
		v.kind, v.text = jsonString, token
	case json.Delim:
		v.kind = jsonArray
		if token == '{' {
			v.kind = jsonObject
		}
		for decoder.More() {
			if v.kind == jsonObject {
				key, err := decoder.Token()
				if err != nil {
					return err
				}
				v.keys = append(v.keys, key.(string)) //nolint:forcetypeassert // a key of an object is a string
			}
			var item jsonValue
			if err := item.decode(decoder, depth+1); err != nil {
				return err
			}
			v.items = append(v.items, item)
		}
		_, err = decoder.Token()
	}
	return err
}

// field gives the value of a key; nil when the object does not have it.
func (v *jsonValue) field(key string) *jsonValue {
	var found *jsonValue
	for i, have := range v.keys {
		if have == key {
			found = &v.items[i] // the last one counts
		}
	}
	return found
}
