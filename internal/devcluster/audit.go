package devcluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// ErrNoAudit says that the cluster was started without Options.Audit.
var ErrNoAudit = errors.New("the cluster keeps no audit log: set devcluster.Options.Audit")

// auditPolicy has every request logged once it is answered, and a watch once it has begun; who asks what, and no bodies but those of deletes,
// which say under what conditions and hold no values.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [delete, deletecollection]
- level: Metadata
`

// auditArgs write each event before its request is answered to the end: what a client has an answer for is in the log. A log that begins anew at
// some size would lose marks, so it does not.
func (c *Cluster) auditArgs() []string {
	return []string{
		"--audit-policy-file=" + c.state.path(filePolicy),
		"--audit-log-path=" + c.state.path(fileAudit),
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=100000",
	}
}

// An AuditEvent is one request as the API server saw it.
type AuditEvent struct {
	// ID is the request's. A client may choose it by the header Audit-ID.
	ID string
	// Verb is Kubernetes' own, such as "list" or "deletecollection"; for a path that is no resource, the method in small letters.
	Verb string
	// User is who asked, or whom the asker impersonated.
	User, UserAgent string
	// Resource in the plural, such as "pods", and what else names the object; all empty for a path that is no resource. Name is empty for a list, and
	// for a create that left the name to the server.
	Group, Resource, Subresource, Namespace, Name string
	// URI is the request's path with its query.
	URI string
	// PreconditionUID is the UID that an object must have for a delete to take it; empty where the request names none.
	PreconditionUID string
	// Code is the answer's HTTP status; 0 for a request that was not answered.
	Code int
}

// String is one line, as for a test's message.
func (e AuditEvent) String() string {
	return fmt.Sprintf("%s %s by %s (%s): %d", e.Verb, e.URI, e.User, e.UserAgent, e.Code)
}

// Query is that of the request, such as dryRun, limit or continue.
func (e AuditEvent) Query() url.Values {
	uri, err := url.Parse(e.URI)
	if err != nil {
		return nil
	}
	return uri.Query()
}

// Stores says that the request could have changed what the cluster holds or runs, whatever the answer was: it neither reads, nor is a dry run,
// nor one of the reviews that answer about their own user and are kept nowhere. What goes through to a pod, a node or a service counts, as
// nobody knows what becomes of it there.
func (e AuditEvent) Stores() bool {
	if slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, e.Subresource) {
		return true
	}
	switch e.Verb {
	case "get", "list", "watch", "head", "options":
		return false
	case "create":
		own := strings.HasPrefix(e.Resource, "selfsubject") && strings.HasSuffix(e.Resource, "reviews")
		if own && (e.Group == "authorization.k8s.io" || e.Group == "authentication.k8s.io") {
			return false
		}
	}
	return !slices.Equal(e.Query()["dryRun"], []string{"All"})
}

// An AuditMark is a place in the audit log.
type AuditMark int64

// AuditMark is where the log ends now.
func (c *Cluster) AuditMark() (AuditMark, error) {
	if !c.options.Audit {
		return 0, ErrNoAudit
	}
	info, err := os.Stat(c.state.path(fileAudit))
	if err != nil {
		return 0, err
	}
	return AuditMark(info.Size()), nil
}

// AuditSince returns the requests that were logged after the mark, each once, in the order of the log, and the mark after them. Requests that
// were answered before the call are among them.
func (c *Cluster) AuditSince(ctx context.Context, mark AuditMark) ([]AuditEvent, AuditMark, error) {
	if !c.options.Audit {
		return nil, mark, ErrNoAudit
	}
	// A request of our own, so that what was answered before it is not only written but also there to be read.
	last := auditedAs("mark-" + string(uuid.NewUUID()))
	asked := c.client.Discovery().RESTClient().Get().AbsPath("/version").SetHeader(auditHeader, string(last)).Do(ctx).Error()
	if asked != nil {
		return nil, mark, fmt.Errorf("mark the audit log: %w", asked)
	}
	log := &auditLog{path: c.state.path(fileAudit), mark: mark}
	err := poll(ctx, func(context.Context) error { return log.until(last) })
	return log.events(func(e AuditEvent) bool { return !strings.HasPrefix(e.ID, "mark-") }), log.mark, err
}

// auditHeader carries the ID by which a request is logged.
const auditHeader = "Audit-ID"

type auditedAs string

// An auditLog is what was read of the log.
type auditLog struct {
	path string
	mark AuditMark
	read []AuditEvent
	seen map[string]int // where an ID is in read
}

// until reads on and says whether a request is there.
func (l *auditLog) until(id auditedAs) error {
	if err := l.more(); err != nil {
		return err
	}
	if _, there := l.seen[string(id)]; !there {
		return fmt.Errorf("request %s is not in the audit log yet", id)
	}
	return nil
}

// more reads the whole lines that were added.
func (l *auditLog) more() error {
	file, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if whole, err := l.toLine(file); !whole || err != nil {
		return err
	}
	if _, err := file.Seek(int64(l.mark), io.SeekStart); err != nil {
		return err
	}
	added, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	for {
		line, rest, whole := bytes.Cut(added, []byte("\n"))
		if !whole {
			return nil
		}
		if err := l.take(line); err != nil {
			return err
		}
		l.mark += AuditMark(len(line) + 1)
		added = rest
	}
}

// toLine moves a mark that was made while a line was being written to the end of that line: its request was there before the mark. whole is false
// while the line has no end.
func (l *auditLog) toLine(file *os.File) (whole bool, err error) {
	if l.mark == 0 || len(l.read) > 0 {
		return true, nil
	}
	if _, err := file.Seek(int64(l.mark)-1, io.SeekStart); err != nil {
		return false, err
	}
	rest, err := bufio.NewReader(file).ReadString('\n')
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	l.mark += AuditMark(max(len(rest)-1, 0))
	return err == nil, err
}

// auditLine is how the API server writes an event (source: audit.k8s.io/v1, Event).
type auditLine struct {
	AuditID, RequestURI, Verb, UserAgent string
	User, ImpersonatedUser               struct{ Username string }
	ObjectRef                            struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	RequestObject                        struct{ Preconditions struct{ UID string } }
	ResponseStatus                       struct{ Code int }
}

// take keeps an event; the second of a request, such as the end of a watch, takes the place of the first.
func (l *auditLog) take(line []byte) error {
	var raw auditLine
	if err := json.Unmarshal(line, &raw); err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	event := AuditEvent{
		ID: raw.AuditID, Verb: raw.Verb, User: raw.User.Username, UserAgent: raw.UserAgent, URI: raw.RequestURI, Code: raw.ResponseStatus.Code,
		Group: raw.ObjectRef.APIGroup, Resource: raw.ObjectRef.Resource, Subresource: raw.ObjectRef.Subresource,
		Namespace: raw.ObjectRef.Namespace, Name: raw.ObjectRef.Name, PreconditionUID: raw.RequestObject.Preconditions.UID,
	}
	if raw.ImpersonatedUser.Username != "" {
		event.User = raw.ImpersonatedUser.Username
	}
	if at, twice := l.seen[event.ID]; twice {
		l.read[at] = event
		return nil
	}
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	l.seen[event.ID] = len(l.read)
	l.read = append(l.read, event)
	return nil
}

func (l *auditLog) events(which func(AuditEvent) bool) []AuditEvent {
	var all []AuditEvent
	for _, e := range l.read {
		if which(e) {
			all = append(all, e)
		}
	}
	return all
}
