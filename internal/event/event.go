// Package event holds the events of a converge: one struct per thing that happened, in the order in which a converge emits them.
//
// It decides what can be told, not how: internal/narrate turns an event into lines, Marshal into JSON. Package jr2 publishes every
// type under its own name.
package event

import (
	"encoding/json"
	"fmt"
)

// Version is the version of the JSON form. It grows when a field changes its meaning; new types and fields do not change it.
const Version = 1

// Event is something that a converge did or saw.
type Event interface {
	// Type is the stable name of the event in its JSON form.
	Type() string
}

// Marshal writes an event as one JSON object with its type in the field "type".
func Marshal(e Event) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Type(), err)
	}
	head := fmt.Sprintf(`{"type":%q`, e.Type())
	if string(body) == "{}" {
		return []byte(head + "}"), nil
	}
	return append([]byte(head+","), body[1:]...), nil
}
