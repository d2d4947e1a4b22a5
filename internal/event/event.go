// Package event holds the events of a converge: one struct per thing that happened, in the order in which a converge emits them.
//
// It decides what can be told, not how: internal/narrate turns an event into lines, Marshal into JSON. Package jr2 publishes every
// type under its own name.
package event

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Version is the version of the JSON form. It grows when a field changes its meaning; new types and fields do not change it.
const Version = 1

// Event is something that a converge did or saw.
type Event interface {
	// Type is the stable name of the event in its JSON form.
	Type() string
}

// Marshal writes an event as one JSON object with its type in the field "type", which is the first. A list that is empty is [] and never
// null; a field that may be left out says so in its tag.
func Marshal(e Event) ([]byte, error) {
	body, err := json.Marshal(withLists(e))
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Type(), err)
	}
	head := fmt.Sprintf(`{"type":%q`, e.Type())
	if string(body) == "{}" {
		return []byte(head + "}"), nil
	}
	return append([]byte(head+","), body[1:]...), nil
}

// withLists is a copy of the event with an empty list for each one that is nil.
func withLists(e Event) any {
	given := reflect.ValueOf(e)
	if given.Kind() != reflect.Struct {
		return e
	}
	filled := reflect.New(given.Type()).Elem()
	filled.Set(given)
	for i := range filled.NumField() {
		if field := filled.Field(i); field.CanSet() && field.Kind() == reflect.Slice && field.IsNil() {
			field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		}
	}
	return filled.Interface()
}
