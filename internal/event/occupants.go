package event

import (
	"fmt"
	"strings"
)

// Occupants are objects of others in a namespace, as many as a person reads, and what nobody could look at.
type Occupants struct {
	// Objects are the first of them, each with its field managers: "Deployment.apps shop/web (kubectl)".
	Objects []string `json:"objects,omitempty"`
	// More counts those that Objects leaves out.
	More int `json:"more,omitempty"`
	// Unseen are the kinds that could not be looked at, each with the reason. They count as there.
	Unseen []string `json:"unseen,omitempty"`
}

// None says that nothing of others is there, and that everything was looked at.
func (o Occupants) None() bool { return len(o.Objects) == 0 && o.More == 0 && len(o.Unseen) == 0 }

// String names them in one line.
func (o Occupants) String() string {
	text := strings.Join(o.Objects, ", ")
	if o.More > 0 {
		text += fmt.Sprintf(" and %d more", o.More)
	}
	if len(o.Unseen) > 0 {
		if text != "" {
			text += "; "
		}
		text += "nobody could look for " + strings.Join(o.Unseen, ", ")
	}
	return text
}
