package jr2_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
)

// TestWithoutTheKinds: a cluster to which nobody brought the operator is named before anything is written, and not by the failure of
// the first write.
func TestWithoutTheKinds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s: nothing may be written", r.Method, r.URL.Path)
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}`)
		case r.URL.Path == "/api/v1/namespaces/kinds":
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kinds", "labels": {"jr2.dev/instance": "kinds"}}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	slots := []config.RepoSlot{{Slot: "app", State: "bound", URL: "https://git.example.test/team/app"}}
	inst := &config.Instance{Name: "kinds", Workflows: []config.Workflow{{Name: "w", Workspaces: []config.Workspace{{Path: []string{}, Repos: slots}}}}}
	bare := &rest.Config{Host: server.URL}
	_, run := jr2.Run(t.Context(), jr2.RunOptions{Workflow: "w", Instance: inst, Config: bare, Context: "bare"})
	_, runs := jr2.Runs(t.Context(), jr2.RunsOptions{Namespace: "kinds", Config: bare, Context: "bare"})
	_, status := jr2.Status(t.Context(), jr2.RunsOptions{Namespace: "kinds", Config: bare, Context: "bare"}, "abc")
	for what, err := range map[string]error{"run": run, "runs": runs, "status": status} {
		if missing := (*jr2.NoKindsError)(nil); !errors.As(err, &missing) || !strings.HasPrefix(err.Error(), "bare does not serve the kinds Sandbox and Repo of core.jr2.dev/v1alpha1") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
