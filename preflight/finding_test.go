package preflight_test

import (
	"errors"
	"fmt"
	"testing"

	"jr2.dev/jr2/preflight"
)

func TestRefused(t *testing.T) {
	warn := preflight.Finding{Severity: preflight.Warn, Message: "w"}
	note := preflight.Finding{Severity: preflight.Note, Message: "n"}
	one := preflight.Finding{Severity: preflight.Refuse, Message: "refusing: 1"}
	two := preflight.Finding{Severity: preflight.Refuse, Message: "refusing: 2"}
	for _, findings := range [][]preflight.Finding{nil, {}, {warn, note}} {
		if err := preflight.Refused(findings); err != nil {
			t.Errorf("%v: got %v", findings, err)
		}
	}
	err := fmt.Errorf("up: %w", preflight.Refused([]preflight.Finding{warn, one, note, two}))
	var refusal *preflight.Refusal
	if !errors.As(err, &refusal) || len(refusal.Findings) != 2 || refusal.Error() != "refusing: 1\nrefusing: 2" {
		t.Errorf("got %#v", err)
	}
}
