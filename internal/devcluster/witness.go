package devcluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
)

// A Witness tells by the audit log what the clients of one configuration asked the API server, whoever else talks to it. It is good for a
// configuration that leads there by a proxy too.
type Witness struct {
	cluster *Cluster
	prefix  string
	from    AuditMark

	mu       sync.Mutex
	sent     int
	answered []string
}

// Witness marks every request of clients that are made from the configuration after this call.
func (c *Cluster) Witness(config *rest.Config) (*Witness, error) {
	from, err := c.AuditMark()
	if err != nil {
		return nil, err
	}
	w := &Witness{cluster: c, prefix: "witness-" + string(uuid.NewUUID())[:8], from: from}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) { return w.roundTrip(next, r) })
	})
	return w, nil
}

// roundTrip gives the request its ID. A server that keeps the ID sends it back; an answer without it came from something in between.
func (w *Witness) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.sent++
	id := fmt.Sprintf("%s-%d", w.prefix, w.sent)
	w.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Set(auditHeader, id)
	response, err := next.RoundTrip(r)
	if err == nil && response.Header.Get(auditHeader) == id {
		w.mu.Lock()
		w.answered = append(w.answered, id)
		w.mu.Unlock()
	}
	return response, err
}

// Events are the requests until now in the order in which the server logged them: ours, and those of everybody else since the Witness was there.
// Every request of ours that the server answered is among them: where one is missing, Events waits for it as long as ctx allows.
func (w *Witness) Events(ctx context.Context) (ours, others []AuditEvent, err error) {
	err = poll(ctx, func(ctx context.Context) error {
		all, _, err := w.cluster.AuditSince(ctx, w.from)
		if err != nil {
			return err
		}
		ours, others = nil, nil
		seen := map[string]bool{}
		for _, e := range all {
			if strings.HasPrefix(e.ID, w.prefix+"-") {
				ours, seen[e.ID] = append(ours, e), true
			} else {
				others = append(others, e)
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, id := range w.answered {
			if !seen[id] {
				return fmt.Errorf("request %s was answered and is not in the audit log", id)
			}
		}
		return nil
	})
	return ours, others, err
}
