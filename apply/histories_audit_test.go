package apply_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
)

// A deleteLog reads in the audit log how the code under test deletes.
type deleteLog struct {
	mu   sync.Mutex
	mark devcluster.AuditMark
}

// check: each delete names the UID that it means, so that it takes no object that has the name by then.
func (l *deleteLog) check(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, mark, err := shared.AuditSince(context.WithoutCancel(t.Context()), l.mark)
	if err != nil {
		t.Fatal(err)
	}
	l.mark = mark
	for _, e := range events {
		unconditional := e.Verb == "deletecollection" || e.Verb == "delete" && e.PreconditionUID == ""
		if strings.HasPrefix(e.UserAgent, ourAgent) && unconditional {
			t.Errorf("a delete that names no UID: %v", e)
		}
	}
}
