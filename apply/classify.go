package apply

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Classify tells the cause of an error of the API or of the way to it. It looks through wrapped errors.
func Classify(err error) Class {
	var object *ObjectError
	switch {
	case err == nil:
		return ClassNone
	case errors.As(err, &object) && object.Class != ClassNone:
		return object.Class
	case meta.IsNoMatchError(err):
		return ClassNoMatch
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return classifyStatus(status.Status())
	}
	return classifyTransport(err)
}

// A rule is a row of the table: all that it states must hold. Causes come before texts, because texts change between versions.
type rule struct {
	class  Class
	code   int32                  // 0 is any
	reason metav1.StatusReason    // "" is any
	cause  metav1.CauseType       // "" is any
	any    []string               // one of these is in the message, unless empty
	all    []string               // and all of these
	refine func(msg string) Class // decides between classes of one text; nil takes class
}

// statusRules is the table, first match wins.
func statusRules() []rule {
	return []rule{
		{class: ClassNamespaceTerminating, cause: "NamespaceTerminating"},
		{class: ClassNamespaceTerminating, code: 403, all: []string{"because it is being terminated"}},
		{class: ClassConflict, cause: metav1.CauseTypeFieldManagerConflict},
		{class: ClassConflict, code: 409, all: []string{"Apply failed with", "conflict"}},

		// A webhook that says no and one that can't be asked come with any code that it or the server likes.
		{class: ClassDenied, all: []string{"denied the request"}},
		{class: ClassDenied, all: []string{"ValidatingAdmissionPolicy", "denied request"}},
		{class: ClassWebhookUnready, code: 500, any: []string{"failed calling webhook", "failed to call webhook"}},
		{class: ClassWebhookUnready, code: 500, all: []string{"conversion webhook for", "failed"}},

		{class: ClassQuotaNever, code: 403, all: []string{"exceeded quota: "}, refine: classifyQuota},
		{class: ClassQuotaUnspecified, code: 403, all: []string{"failed quota: "}},
		{class: ClassQuotaWait, code: 403, all: []string{"status unknown for quota: "}},
		{class: ClassQuotaNever, code: 403, all: []string{"insufficient quota to match these scopes"}},
		{class: ClassPodSecurity, code: 403, all: []string{"violates PodSecurity "}},
		{class: ClassPriorityClass, code: 403, all: []string{"no PriorityClass with name ", "was found"}},
		{class: ClassServiceAccount, code: 403, all: []string{"error looking up service account ", "not found"}},
		{class: ClassEscalation, code: 403, any: []string{"attempting to grant RBAC permissions not currently held", "attempting to grant extra privileges"}},
		{class: ClassForbidden, code: 403, all: []string{" cannot "}, any: []string{" resource ", " path "}},
		{class: ClassDenied, code: 403}, // an admission plug-in of its own mind
		{class: ClassUnauthorized, code: 401},

		{class: ClassBeingDeleted, code: 409, all: []string{"object is being deleted"}},
		{class: ClassAlreadyExists, code: 409, reason: metav1.StatusReasonAlreadyExists},
		{class: ClassStale, code: 409},
		{class: ClassStale, code: 410},

		{class: ClassImmutable, code: 422, any: []string{"immutable", "Forbidden: updates to ", "may not change once set",
			"may not be changed in an update", "Forbidden: may not be specified when", "spec.strategy.rollingUpdate: Forbidden",
			"Forbidden: pod updates may not change fields", "cannot change roleRef"}},
		{class: ClassInvalid, code: 422},
		{class: ClassDuplicateKeys, all: []string{"duplicate entries for key"}},
		{class: ClassInvalid, code: 500, any: []string{"failed to create typed patch object", "failed to create typed live object", "unable to convert unstructured object"}},
		{class: ClassInvalid, code: 400},
		{class: ClassInvalid, code: 413},

		{class: ClassNoMatch, code: 404, any: []string{"could not find the requested resource", "no matches for kind", "page not found"}},
		{class: ClassNotFound, code: 404},

		{class: ClassThrottled, code: 429},
		{class: ClassUnavailable, code: 502},
		{class: ClassUnavailable, code: 503},
		{class: ClassUnavailable, code: 504},
		{class: ClassUnavailable, code: 408},
		// The store behind the server is changing its leader, or the server is ending: 500 with the store's words.
		{class: ClassUnavailable, code: 500},
	}
}

func classifyStatus(s metav1.Status) Class {
	for _, r := range statusRules() {
		if r.matches(s) {
			if r.refine != nil {
				return r.refine(s.Message)
			}
			return r.class
		}
	}
	return ClassUnknown
}

func (r rule) matches(s metav1.Status) bool {
	if r.code != 0 && r.code != s.Code || r.reason != "" && r.reason != s.Reason {
		return false
	}
	if r.cause != "" && !hasCause(s, r.cause) {
		return false
	}
	for _, text := range r.all {
		if !strings.Contains(s.Message, text) {
			return false
		}
	}
	if len(r.any) == 0 {
		return true
	}
	for _, text := range r.any {
		if strings.Contains(s.Message, text) {
			return true
		}
	}
	return false
}

func hasCause(s metav1.Status, t metav1.CauseType) bool {
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Type == t {
			return true
		}
	}
	return false
}

// classifyRefusal classifies a refusal that a controller wrote into an event or a condition, where only the words are left.
func classifyRefusal(message string) Class {
	code := int32(http.StatusForbidden)
	if strings.Contains(message, "failed calling webhook") {
		code = http.StatusInternalServerError
	}
	if !strings.Contains(message, "forbidden") && code == http.StatusForbidden {
		return ClassUnknown
	}
	return classifyStatus(metav1.Status{Code: code, Message: message})
}

// classifyTransport reads errors that never became an answer of the API.
func classifyTransport(err error) Class {
	var dns *net.DNSError
	switch {
	case strings.Contains(err.Error(), "Client.Timeout exceeded"): // net/http's own time-out; it claims to be the context's
		return ClassUnavailable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ClassCanceled
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), utilnet.IsTimeout(err), utilnet.IsHTTP2ConnectionLost(err):
		return ClassUnavailable
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return ClassUnavailable
	case errors.As(err, &dns) && dns.IsTemporary:
		return ClassUnavailable
	}
	for _, text := range []string{"unexpected EOF", "connection reset by peer", "server sent GOAWAY", "stream error:", "http2: client connection force closed", "transport connection broken"} {
		if strings.Contains(err.Error(), text) {
			return ClassUnavailable
		}
	}
	return ClassUnknown
}
