package apply

// A Class is the cause of a request's failure, read from code, reason, causes and message together, because one status code has many
// causes: a 403 may be a quota, an account that does not exist yet, a dying namespace, or missing rights.
type Class string

const (
	ClassNone Class = "" // no error

	// These end by themselves and are retried.
	ClassQuotaWait      Class = "quota-wait"      // the quota has room for the request when others leave
	ClassServiceAccount Class = "service-account" // the account is not there yet
	ClassBeingDeleted   Class = "being-deleted"   // the old object of that name is still going
	ClassWebhookUnready Class = "webhook-unready" // the webhook's server cannot be reached
	ClassNoMatch        Class = "no-match"        // the kind is not served (yet)
	ClassThrottled      Class = "throttled"       // the server asks to come later
	ClassUnavailable    Class = "unavailable"     // the server or its store is away, or the connection broke
	ClassStale          Class = "stale"           // the object moved since it was read

	// These need a person or another request.
	ClassQuotaNever           Class = "quota-never"           // the request is larger than the quota
	ClassQuotaUnspecified     Class = "quota-unspecified"     // the quota asks for requests or limits that the object does not state
	ClassPodSecurity          Class = "pod-security"          // Pod Security refuses the pod
	ClassNamespaceTerminating Class = "namespace-terminating" // the namespace is being deleted
	ClassEscalation           Class = "escalation"            // the caller grants what it does not hold
	ClassForbidden            Class = "forbidden"             // the caller lacks the right
	ClassUnauthorized         Class = "unauthorized"          // the server does not know the caller
	ClassConflict             Class = "conflict"              // other managers own fields
	ClassImmutable            Class = "immutable"             // the field cannot be changed
	ClassDuplicateKeys        Class = "duplicate-keys"        // a list that is merged by key holds a key twice
	ClassDenied               Class = "admission-denied"      // a webhook, a policy or an admission plug-in said no
	ClassPriorityClass        Class = "priority-class"        // the pod names a PriorityClass that does not exist
	ClassInvalid              Class = "invalid"               // the server refuses the object as it is
	ClassAlreadyExists        Class = "already-exists"        // a create met an object of that name
	ClassNotFound             Class = "not-found"             // the object is not there
	ClassCanceled             Class = "canceled"              // the caller's context ended
	ClassUnknown              Class = "unknown"
)

// Retryable says that the same request may succeed later without anybody changing it.
func (c Class) Retryable() bool {
	switch c {
	case ClassQuotaWait, ClassServiceAccount, ClassBeingDeleted, ClassWebhookUnready, ClassNoMatch, ClassThrottled, ClassUnavailable, ClassStale:
		return true
	}
	return false
}
