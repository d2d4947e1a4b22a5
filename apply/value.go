package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// A Value is one side of a FieldChange: JSON, absent (the zero Value), or hidden, because it is a Secret's. A hidden Value does not
// hold what it hides.
type Value struct {
	data  any
	state valueState
}

type valueState int

const (
	valueAbsent valueState = iota
	valueShown
	valueHidden
)

const hiddenText = "****"

// Absent says that the field is not there.
func (v Value) Absent() bool { return v.state == valueAbsent }

// Hidden says that there is a value, which is not to be shown.
func (v Value) Hidden() bool { return v.state == valueHidden }

// IsZero is Absent, for encoding/json's omitzero.
func (v Value) IsZero() bool { return v.Absent() }

// MarshalJSON gives the value as JSON, null when it is absent, and "****" when it is hidden.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Hidden() {
		return json.Marshal(hiddenText)
	}
	return json.Marshal(v.data)
}

// String is the value as JSON on one line, without characters that a terminal obeys; "(absent)" and "****" stand for the others.
func (v Value) String() string {
	switch v.state {
	case valueAbsent:
		return "(absent)"
	case valueHidden:
		return hiddenText
	}
	raw, err := json.Marshal(v.data)
	if err != nil {
		return fmt.Sprintf("(unprintable: %v)", err)
	}
	var b strings.Builder
	for _, c := range string(raw) {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// GoString is String.
func (v Value) GoString() string { return v.String() }
