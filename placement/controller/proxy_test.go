package controller_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"jr2.dev/jr2/internal/devcluster"
)

// answer is what an API server answers.
func answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// editPosts changes what is created: the client must send JSON.
func editPosts(suffix string, next http.RoundTripper, edit func(map[string]any)) http.RoundTripper {
	return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, suffix) {
			return next.RoundTrip(r)
		}
		var object map[string]any
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			return nil, err
		}
		edit(object)
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return next.RoundTrip(r)
	})
}
