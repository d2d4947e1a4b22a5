package config

// A Secret is a value that does not print: fmt, encoding/json and slog see a mask. Reveal is the one way to the value, so that
// each place that reads one can be found by its name.
type Secret struct{ value *string }

// NewSecret wraps a value, which may be empty: present and empty differs from the zero Secret, which is absent.
func NewSecret(value string) Secret { return Secret{&value} }

// Present says whether there is a value.
func (s Secret) Present() bool { return s.value != nil }

// Reveal returns the value, or "" when there is none.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

const mask = "****"

func (s Secret) String() string {
	if s.value == nil {
		return ""
	}
	return mask
}

// GoString masks %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalJSON masks the value; an absent one is null.
func (s Secret) MarshalJSON() ([]byte, error) {
	if s.value == nil {
		return []byte("null"), nil
	}
	return []byte(`"` + mask + `"`), nil
}
