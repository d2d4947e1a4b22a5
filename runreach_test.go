package jr2_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
)

// TestRunIsNotLetIn: a server that answers is not unreachable, whatever it answers.
func TestRunIsNotLetIn(t *testing.T) {
	t.Parallel()
	for code, word := range map[int]string{http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, word, code) }))
		defer server.Close()
		run := func(host string) error {
			inst := &config.Instance{Name: "reach", Workflows: []config.Workflow{{Name: "w"}}}
			_, err := jr2.Run(t.Context(), jr2.RunOptions{Workflow: "w", Instance: inst, Context: "shared", Config: &rest.Config{Host: host}})
			return err
		}
		if err := run(server.URL); err == nil || errors.As(err, new(*jr2.UnreachableError)) || !strings.HasPrefix(err.Error(), "shared does not let this user in") {
			t.Errorf("%d: %v", code, err)
		}
		server.Close()
		if err := run(server.URL); !errors.As(err, new(*jr2.UnreachableError)) {
			t.Errorf("no server: %v", err)
		}
	}
}
