package images

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	// longestWait bounds what a registry may ask for by Retry-After, in all for one request.
	longestWait = time.Minute
	// longestSilence is how long a registry may neither take nor send a byte.
	longestSilence = time.Minute
)

// patient waits as long as a registry asks for (429 or 503 with Retry-After), within longestWait, and does not wait for one that is
// silent. Other failures are the library's to try again.
type patient struct {
	inner   http.RoundTripper
	silence time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	left := longestWait
	for {
		response, err := p.once(req)
		if err != nil {
			return nil, err
		}
		wait, asked := retryAfter(response)
		if !asked || wait > left || (req.Body != nil && req.Body != http.NoBody && req.GetBody == nil) {
			return response, nil
		}
		left -= wait
		response.Body.Close() //nolint:errcheck // the answer is not used
		if err := sleep(req.Context(), wait); err != nil {
			return nil, err
		}
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		req = again
	}
}

// retryAfter reads how long a registry asks to wait: seconds, or a date.
func retryAfter(response *http.Response) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	text := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// once is one request that ends when no byte moves for too long.
func (p *patient) once(req *http.Request) (*http.Response, error) {
	limit := p.silence
	if limit == 0 {
		limit = longestSilence
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	watch := &watch{limit: limit, cancel: cancel}
	watch.timer = time.AfterFunc(limit, func() { cancel(fmt.Errorf("%s is silent for %s", req.URL.Host, limit)) })
	sent := req.Clone(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		sent.Body = &watched{ReadCloser: req.Body, watch: watch}
	}
	response, err := p.inner.RoundTrip(sent)
	if err != nil {
		if req.Context().Err() == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		watch.end()
		return nil, err
	}
	response.Body = &watched{ReadCloser: response.Body, watch: watch, last: true}
	return response, nil
}

// watch ends a request that is silent.
type watch struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}

// watched tells the watch of each read. The last body of a request ends it.
type watched struct {
	io.ReadCloser
	watch *watch
	last  bool
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.watch.timer.Reset(w.watch.limit)
	return n, err
}

// Close implements io.Closer.
func (w *watched) Close() error {
	if w.last {
		w.watch.end()
	}
	return w.ReadCloser.Close()
}
