package main

import (
	"strings"
	"testing"
)

// TestCheckOfUnknownCodes: a misspelt code chooses nothing, and nothing would be wrong then.
func TestCheckOfUnknownCodes(t *testing.T) {
	isolated(t)
	for code, args := range map[string][]string{
		"secret-mising":  {"--only", "secret-mising"},
		"rights":         {"--skip", "secret-missing,rights"},
		"Secret-Missing": {"--only", "Secret-Missing"},
	} {
		s := newSession()
		err := s.run(t.Context(), append([]string{"check", instances(t, "ping")}, args...)...)
		if s.silent(t); err == nil || !strings.HasPrefix(s.err.String(), `error: no finding has the code "`+code+`" — codes: anti-affinity, `) {
			t.Errorf("%q: %v\n%s", args, err, s.err)
		}
	}
}
