package patient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"jr2.dev/jr2/internal/patient"
)

// A script fails the first requests and then lets them through.
type script struct {
	next     http.RoundTripper
	failures []error
	bodies   []string
}

func (s *script) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		text, _ := io.ReadAll(request.Body)
		s.bodies = append(s.bodies, string(text))
		request.Body = io.NopCloser(bytes.NewReader(text))
	}
	if len(s.failures) == 0 {
		return s.next.RoundTrip(request)
	}
	failure := s.failures[0]
	s.failures = s.failures[1:]
	if failure == nil {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: request}, nil
	}
	return nil, failure
}

func TestWhatIsSentAgain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer server.Close()
	for name, test := range map[string]struct {
		method, content string
		failure         error
		again           bool
		query           string
	}{
		"a read that was refused":          {http.MethodGet, "", syscall.ECONNREFUSED, true, ""},
		"a read whose answer was lost":     {http.MethodGet, "", io.EOF, true, ""},
		"a read of a server that starts":   {http.MethodGet, "", nil, true, ""},
		"an apply whose answer was lost":   {http.MethodPatch, "application/apply-patch+yaml", syscall.ECONNRESET, true, ""},
		"a create that was refused":        {http.MethodPost, "application/json", syscall.ECONNREFUSED, true, ""},
		"a create whose answer was lost":   {http.MethodPost, "application/json", io.EOF, false, ""},
		"a dry run whose answer was lost":  {http.MethodPost, "application/json", io.EOF, true, "?fieldManager=jr2&dryRun=All"},
		"what only looks like a dry run":   {http.MethodPost, "application/json", io.EOF, false, "?fieldManager=dryRun%3DAll&dryRun="},
		"a patch whose answer was lost":    {http.MethodPatch, "application/merge-patch+json", io.EOF, false, ""},
		"a create of a server that starts": {http.MethodPost, "application/json", nil, false, ""},
		"a failure of a kind nobody knows": {http.MethodGet, "", errors.New("x509: unknown authority"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			steps := &script{next: http.DefaultTransport}
			transport := patient.Wrap(steps)
			send := func() (*http.Response, error) {
				request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.query, bytes.NewReader([]byte("body")))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Content-Type", test.content)
				return transport.RoundTrip(request)
			}
			if _, err := send(); err != nil { // the server is there
				t.Fatal(err)
			}
			steps.failures, steps.bodies = []error{test.failure, test.failure}, nil
			response, err := send()
			again := err == nil && response.StatusCode == http.StatusOK
			if again != test.again {
				t.Errorf("sent again: %v, want %v (%v)", again, test.again, err)
			}
			for _, body := range steps.bodies {
				if body != "body" {
					t.Errorf("sent the body %q", body)
				}
			}
			if again && len(steps.bodies) != 3 {
				t.Errorf("sent %d times", len(steps.bodies))
			}
		})
	}
}

// TestABusyServerIsAskedAgain: a read that is answered 429 without a word of when to come again is sent again, from the first answer on; what the client
// waits for by itself, and what writes, is not.
func TestABusyServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, after string
		asked         int
	}{
		"a read":                   {http.MethodGet, "", 3},
		"a read that is told when": {http.MethodGet, "1", 1},
		"a write":                  {http.MethodPost, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked > 2 {
					return
				}
				if test.after != "" {
					w.Header().Set("Retry-After", test.after)
				}
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := patient.Wrap(http.DefaultTransport).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close() //nolint:errcheck // nothing is in it
			if asked != test.asked || (response.StatusCode == http.StatusOK) != (test.asked == 3) {
				t.Errorf("asked %d times, answered %d", asked, response.StatusCode)
			}
		})
	}
}

// TestAWrongAddressIsToldAtOnce: before the first answer nothing is tried again.
func TestAWrongAddressIsToldAtOnce(t *testing.T) {
	steps := &script{failures: []error{syscall.ECONNREFUSED, syscall.ECONNREFUSED}}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1", nil)
	if _, err := patient.Wrap(steps).RoundTrip(request); !errors.Is(err, syscall.ECONNREFUSED) || len(steps.failures) != 1 {
		t.Errorf("%v after %d failures", err, 2-len(steps.failures))
	}
}

// TestTheContextEndsPatience.
func TestTheContextEndsPatience(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	steps := &script{next: http.DefaultTransport}
	transport := patient.Wrap(steps)
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if _, err := transport.RoundTrip(request); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range 100 {
		steps.failures = append(steps.failures, syscall.ECONNREFUSED)
	}
	cancel()
	if _, err := transport.RoundTrip(request.WithContext(ctx)); err == nil || len(steps.failures) != 99 {
		t.Errorf("%v with %d failures left", err, len(steps.failures))
	}
}
