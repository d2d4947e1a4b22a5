package preflight_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A modelServer is an endpoint whose models behave as their names say.
type modelServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // "METHOD PATH model key" of each request
}

// startModelServer serves "good", "no-tools", "busy", "denied" and "broken"; any other is unknown. It lists them unless asked below /unlisted.
func startModelServer(t *testing.T) *modelServer {
	t.Helper()
	s := &modelServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model  string            `json:"model"`
		Tools  []json.RawMessage `json:"tools"`
		Tokens int               `json:"max_tokens"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key")
	s.mu.Lock()
	s.seen = append(s.seen, strings.TrimSpace(fmt.Sprint(r.Method, " ", r.URL.Path, " ", asked.Model, " ", key)))
	s.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		if strings.HasPrefix(r.URL.Path, "/unlisted") {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"data": [{"id": "good"}, {"id": "no-tools"}, {"id": "busy"}, {"id": "denied"}, {"id": "broken"}]}`)
	case asked.Model == "busy":
		http.Error(w, `{"error": {"message": "come back later"}}`, http.StatusTooManyRequests)
	case asked.Model == "denied":
		http.Error(w, `{"error": {"message": "Incorrect API key provided: `+key+`."}}`, http.StatusUnauthorized)
	case asked.Model == "broken":
		http.Error(w, `{"error": {"message": "max_tokens is not allowed"}}`, http.StatusBadRequest)
	case asked.Model == "no-tools":
		fmt.Fprint(w, `{"choices": [{"message": {"content": "I am ready."}}]}`)
	case asked.Model == "good" && strings.HasSuffix(r.URL.Path, "/chat/completions") && len(asked.Tools) == 1 && asked.Tokens == 1024:
		fmt.Fprint(w, `{"choices": [{"message": {"tool_calls": [{"function": {"name": "report", "arguments": "{}"}}]}}]}`)
	case asked.Model == "good" && strings.HasSuffix(r.URL.Path, "/v1/messages"):
		fmt.Fprint(w, `{"content": [{"type": "tool_use", "name": "report", "input": {}}]}`)
	case asked.Model == "good" && strings.HasSuffix(r.URL.Path, "/responses"):
		fmt.Fprint(w, `{"output": [{"type": "function_call", "name": "report"}]}`)
	default:
		http.Error(w, fmt.Sprintf(`{"error": {"message": "The model %q does not exist"}}`, asked.Model), http.StatusNotFound)
	}
}

func (s *modelServer) saw(want string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.seen, want)
}
