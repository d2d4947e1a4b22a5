package jr2_test

import (
	"errors"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
)

// TestRunWithAnUnknownSlot: a misspelt slot is an error before any cluster is asked, and never a repository that silently stays away.
func TestRunWithAnUnknownSlot(t *testing.T) {
	t.Parallel()
	slots := []config.RepoSlot{{Slot: "lib", State: "perRun"}, {Slot: "app", State: "bound", URL: "https://git.example.test/team/app"}}
	for name, c := range map[string]struct {
		workspaces []config.Workspace
		given      map[string]string
		want       string
	}{
		"misspelt": {
			[]config.Workspace{{Path: []string{}, Repos: slots}, {Path: []string{"x"}, Repos: slots[:1]}}, map[string]string{"lib": "https://h.test/o/r", "libs": "https://h.test/o/r"},
			`a url was given for Repo Slot "libs", which workflow "w" does not have — slots: app, lib`,
		},
		"no Workspace": {
			nil, map[string]string{"app": "https://h.test/o/r"},
			`a url was given for Repo Slot "app", and workflow "w" has no Workspace with repositories — leave it out`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inst := &config.Instance{Name: "slots", Workflows: []config.Workflow{{Name: "w", Workspaces: c.workspaces}}}
			_, err := jr2.Run(t.Context(), jr2.RunOptions{Workflow: "w", Instance: inst, Repos: c.given})
			if unknown := (*jr2.UnknownSlotError)(nil); !errors.As(err, &unknown) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
