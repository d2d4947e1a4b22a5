package apply_test

import (
	"net/http"
	"testing"

	"jr2.dev/jr2/apply"
)

// An object of nobody's set is not written when it is as asked for, whoever made it, and is when a field differs, or was asked for before and is
// not any more.
func TestWhatIsHeldAlreadyIsNotWritten(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, map[string]string{"team": "a", "more": "x"})
	var writes int
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			writes++
		}
		return next.RoundTrip(r)
	})
	for _, tt := range []struct {
		name, labels string
		action       apply.Action
		writes       int
	}{
		{"as an admin made it", "team: a", apply.Unchanged, 0},
		{"one more", "team: a, ours: one", apply.Configured, 1},
		{"the same again", "team: a, ours: one", apply.Unchanged, 0},
		{"another value of our own", "team: a, ours: two", apply.Configured, 1},
		{"one less", "team: a", apply.Configured, 1},
		{"what was left", "team: a", apply.Unchanged, 0},
	} {
		s := set(t, ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS, labels: {"+tt.labels+"}}")
		writes = 0
		out, err := apply.Apply(t.Context(), cfg, s, apply.Options{Shared: true})
		if err != nil || out.Objects[0].Action != tt.action || writes != tt.writes {
			t.Errorf("%s: %+v, %d writes, %v", tt.name, out.Objects, writes, err)
		}
	}
}
