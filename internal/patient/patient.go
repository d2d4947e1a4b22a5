// Package patient rides out a short absence of an API server.
//
// It decides which failed requests may be sent again without a second effect, and for how long: a request that never reached the server
// may always, one whose answer was lost only when it reads, is a dry run or is a server-side apply. It does not decide anything about answers that the
// server gave, but for those by which a server says that it is not ready. Until the server has answered for the first time nothing is
// tried again: a wrong address is told at once.
package patient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Patience is how long a server may be away.
const Patience = time.Minute

// Throttling is how long a server may be too busy for a read without a word about when to come again. It is short, because each read waits for itself.
const Throttling = 10 * time.Second

const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 2 * time.Second
)

// Wrap returns a transport that tries again for Patience, or until the request's context ends.
func Wrap(next http.RoundTripper) http.RoundTripper { return &transport{next: next} }

type transport struct {
	next     http.RoundTripper
	answered atomic.Bool // the server was there once
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	delay := firstDelay
	for {
		response, err := t.next.RoundTrip(request)
		if err == nil && !unready(request, response) {
			t.answered.Store(true)
			return response, nil
		}
		patience := Patience
		if err == nil && response.StatusCode == http.StatusTooManyRequests {
			t.answered.Store(true) // no wrong address says so
			patience = Throttling
		}
		next, again := t.again(request, err)
		if !again || time.Since(began)+delay > patience {
			return response, err
		}
		if response != nil {
			drain(response.Body)
		}
		if !pause(request.Context(), delay) {
			return nil, errors.Join(context.Cause(request.Context()), err)
		}
		request, delay = next, min(delay*2, lastDelay)
	}
}

// again returns the request to send once more, with its body from the start, and whether it may be sent.
func (t *transport) again(request *http.Request, err error) (*http.Request, bool) {
	if request.Context().Err() != nil || !t.answered.Load() {
		return nil, false
	}
	if err != nil && !neverSent(err) && !(repeatable(request) && lost(err)) {
		return nil, false
	}
	if request.Body == nil || request.Body == http.NoBody {
		return request, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, failed := request.GetBody()
	next := request.WithContext(request.Context()) // a copy: a transport must not change its request
	next.Body = body
	return next, failed == nil
}

// neverSent says that no connection came about.
func neverSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, syscall.ECONNREFUSED)
}

// lost says that the connection broke, so that nobody knows what became of the request.
func lost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// repeatable says that a second time has no second effect.
func repeatable(request *http.Request) bool {
	if slices.Equal(request.URL.Query()["dryRun"], []string{"All"}) {
		return true
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPatch:
		return request.Header.Get("Content-Type") == "application/apply-patch+yaml"
	}
	return false
}

// unready says that a server which starts, stops or is too busy refused a request that only reads; what else it refuses, it may have begun. A busy one
// that says when to come again is left to the client, which keeps to that.
func unready(request *http.Request, response *http.Response) bool {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return false
	}
	switch response.StatusCode {
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return true
	case http.StatusTooManyRequests:
		return response.Header.Get("Retry-After") == ""
	}
	return false
}

func drain(body io.ReadCloser) {
	io.Copy(io.Discard, io.LimitReader(body, 64<<10)) //nolint:errcheck // it is thrown away
	body.Close()                                      //nolint:errcheck // as above
}

func pause(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
