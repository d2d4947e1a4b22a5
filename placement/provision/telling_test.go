package provision_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/placement/provision"
)

// telling is what a Provision tells, and how it ends.
type telling struct {
	s      *site
	mutex  sync.Mutex
	events []provision.Event
	box    *provision.Provisioned
	err    error
	done   chan struct{}
	cancel context.CancelCauseFunc
}

// start begins a Provision. What it leaves is torn down with the test.
func (s *site) start(request provision.Request, opts provision.Options) *telling {
	s.Helper()
	return s.startAs(s.cfg, request, opts)
}

func (s *site) startAs(cfg *rest.Config, request provision.Request, opts provision.Options) *telling {
	t := &telling{s: s, done: make(chan struct{})}
	opts.Events = func(e provision.Event) {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		t.events = append(t.events, e)
	}
	ctx, cancel := context.WithCancelCause(s.Context())
	t.cancel = cancel
	go func() {
		defer close(t.done)
		t.box, t.err = provision.Provision(ctx, cfg, request, opts)
	}()
	s.Cleanup(func() { cancel(nil); <-t.done; t.box.Release() })
	return t
}

// end waits for the end.
func (t *telling) end() (*provision.Provisioned, error) {
	t.s.Helper()
	select {
	case <-t.done:
	case <-time.After(time.Minute):
		t.s.Fatalf("it does not end; told %s", t.told())
	}
	return t.box, t.err
}

// told is the events so far, one line each, without what differs from run to run.
func (t *telling) told() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var lines []string
	for _, e := range t.events {
		switch e := e.(type) {
		case provision.Entered:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s", e.State, e.Node)))
		case provision.Waiting:
			changed := ""
			if e.Changed {
				changed = " now"
			}
			lines = append(lines, fmt.Sprintf("waits%s on %s (%s): %s", changed, e.On, e.Outlook, e.Message))
		case provision.WaitEnded:
			lines = append(lines, fmt.Sprintf("waited, placed %t", e.Placed))
		case provision.Unheeded:
			lines = append(lines, "unheeded")
		case provision.Removed:
			lines = append(lines, "removed")
		case provision.LeaseUnrenewed:
			lines = append(lines, "unrenewed: "+e.Err.Error())
		}
	}
	return strings.Join(lines, "\n")
}

// tells waits until something is told.
func (t *telling) tells(text string) {
	t.s.Helper()
	err := wait.PollUntilContextTimeout(t.s.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return strings.Contains(t.told(), text), nil
	})
	if err != nil {
		t.s.Fatalf("it does not tell %q but:\n%s", text, t.told())
	}
}
