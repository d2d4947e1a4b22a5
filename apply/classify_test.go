package apply_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jr2.dev/jr2/apply"
)

func status(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
	s := metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
	if len(causes) > 0 {
		s.Details = &metav1.StatusDetails{Causes: causes}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func forbidden(message string, causes ...metav1.StatusCause) error {
	return status(403, metav1.StatusReasonForbidden, message, causes...)
}

// The table of the field cases: each row with its own body and at least two more of the same kind of fault.
func TestClassify(t *testing.T) {
	const pods = `pods "web-1" is forbidden: `
	for _, tt := range []struct {
		want apply.Class
		err  error
	}{
		// F16: room in principle.
		{apply.ClassQuotaWait, forbidden(pods + "exceeded quota: q, requested: limits.memory=3Gi, used: limits.memory=2Gi, limited: limits.memory=4Gi")},
		{apply.ClassQuotaWait, forbidden(pods + "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1")},
		{apply.ClassQuotaWait, forbidden(`sandboxes.core.jr2.dev "s" is forbidden: exceeded quota: count, requested: count/sandboxes.core.jr2.dev=1, used: count/sandboxes.core.jr2.dev=1, limited: count/sandboxes.core.jr2.dev=1`)},
		{apply.ClassQuotaWait, forbidden(`configmaps "x" is forbidden: status unknown for quota: q, resources: configmaps`)},
		// F16: never.
		{apply.ClassQuotaNever, forbidden(pods + "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1")},
		{apply.ClassQuotaNever, forbidden(pods + "exceeded quota: q, requested: pods=1,requests.memory=1025Mi, used: pods=0,requests.memory=0, limited: pods=9,requests.memory=1Gi")},
		{apply.ClassQuotaNever, forbidden(`replicasets.apps "x" is forbidden: exceeded quota: q, requested: count/replicasets.apps=1, used: count/replicasets.apps=0, limited: count/replicasets.apps=0`)},
		{apply.ClassQuotaNever, forbidden(pods + "insufficient quota to match these scopes: [{PriorityClass In [high]}]")},
		// F16: not stated.
		{apply.ClassQuotaUnspecified, forbidden(pods + "failed quota: q: must specify requests.cpu for: app")},
		{apply.ClassQuotaUnspecified, forbidden(pods + "failed quota: q: must specify limits.cpu for: app,proxy; limits.memory for: proxy")},
		{apply.ClassQuotaUnspecified, forbidden(`persistentvolumeclaims "c" is forbidden: failed quota: q: must specify requests.storage`)},
		// F06.
		{apply.ClassPodSecurity, forbidden(pods + `violates PodSecurity "restricted:v1.34": seccompProfile (pod or container "app" must set securityContext.seccompProfile.type)`)},
		{apply.ClassPodSecurity, forbidden(pods + `violates PodSecurity "baseline:latest": hostPath volumes (volume "cache")`)},
		{apply.ClassPodSecurity, forbidden(pods + `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "istio-init" must set ...)`)},
		// F23: the account is on its way.
		{apply.ClassServiceAccount, forbidden(pods + `error looking up service account demo/default: serviceaccount "default" not found`)},
		{apply.ClassServiceAccount, forbidden(pods + `error looking up service account a/web: serviceaccount "web" not found`)},
		{apply.ClassServiceAccount, fmt.Errorf("making it: %w", forbidden(`pods "x-0" is forbidden: error looking up service account x/default: serviceaccounts "default" not found`))},
		// F23: the namespace is going.
		{apply.ClassNamespaceTerminating, forbidden(`configmaps "c" is forbidden: unable to create new content in namespace demo because it is being terminated`, metav1.StatusCause{Type: "NamespaceTerminating", Field: "metadata.namespace"})},
		{apply.ClassNamespaceTerminating, forbidden(`secrets "s" is forbidden: unable to create new content in namespace a because it is being terminated`)},
		{apply.ClassNamespaceTerminating, forbidden(`roles.rbac.authorization.k8s.io "r" is forbidden: in other words`, metav1.StatusCause{Type: "NamespaceTerminating"})},
		// F05: escalation.
		{apply.ClassEscalation, forbidden(`roles.rbac.authorization.k8s.io "r" is forbidden: user "ana" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:` + "\n" + `{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}`)},
		{apply.ClassEscalation, forbidden(`clusterrolebindings.rbac.authorization.k8s.io "r" is forbidden: user "ana" is attempting to grant RBAC permissions not currently held:` + "\n" + `{NonResourceURLs:["*"], Verbs:["get"]}`)},
		{apply.ClassEscalation, forbidden(`rolebindings.rbac.authorization.k8s.io "r" is forbidden: attempting to grant extra privileges: [PolicyRule{}]`)},
		// F05: rights.
		{apply.ClassForbidden, forbidden(`deployments.apps "x" is forbidden: User "ana" cannot patch resource "deployments" in API group "apps" in the namespace "demo"`)},
		{apply.ClassForbidden, forbidden(`namespaces is forbidden: User "ana" cannot list resource "namespaces" in API group "" at the cluster scope`)},
		{apply.ClassForbidden, forbidden(`forbidden: User "system:anonymous" cannot get path "/apis"`)},
		// F18.
		{apply.ClassConflict, status(409, metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "kube-controller-manager" with subresource "scale" using apps/v1: .spec.replicas`, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas"})},
		{apply.ClassConflict, status(409, metav1.StatusReasonConflict, `Apply failed with 2 conflicts: conflicts with "kubectl-edit" using v1: - .data.a - .data.b`)},
		{apply.ClassConflict, status(409, metav1.StatusReasonConflict, `in other words`, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.a"})},
		// F24.
		{apply.ClassBeingDeleted, status(409, metav1.StatusReasonAlreadyExists, `object is being deleted: jobs.batch "migrate" already exists`)},
		{apply.ClassBeingDeleted, status(409, metav1.StatusReasonAlreadyExists, `object is being deleted: serviceaccounts "m" already exists`)},
		{apply.ClassBeingDeleted, status(409, metav1.StatusReasonConflict, `object is being deleted: pods "m" already exists`)},
		{apply.ClassAlreadyExists, status(409, metav1.StatusReasonAlreadyExists, `secrets "s" already exists`)},
		{apply.ClassStale, status(409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to the latest version and try again`)},
		{apply.ClassStale, status(409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on configmaps "c": Precondition failed: UID in precondition: a, UID in object meta: b`)},
		// F25.
		{apply.ClassImmutable, status(422, metav1.StatusReasonInvalid, `Deployment.apps "d" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `+"`type` is 'Recreate'")},
		{apply.ClassImmutable, status(422, metav1.StatusReasonInvalid, `Job.batch "j" is invalid: spec.template: Invalid value: {}: field is immutable`)},
		{apply.ClassImmutable, status(422, metav1.StatusReasonInvalid, `StatefulSet.apps "s" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden`)},
		{apply.ClassImmutable, status(422, metav1.StatusReasonInvalid, `PriorityClass.scheduling.k8s.io "p" is invalid: value: Forbidden: may not be changed in an update.`)},
		{apply.ClassImmutable, status(422, metav1.StatusReasonInvalid, `RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"edit"}: cannot change roleRef`)},
		{apply.ClassImmutable, status(422, metav1.StatusReasonInvalid, "Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`")},
		{apply.ClassInvalid, status(422, metav1.StatusReasonInvalid, `Service "s" is invalid: spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive`)},
		// F15: the webhook's server.
		{apply.ClassWebhookUnready, status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w.example.io": failed to call webhook: Post "https://w.demo.svc:443/v?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`)},
		{apply.ClassWebhookUnready, status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w.example.io": failed to call webhook: Post "https://w.demo.svc:443/v": tls: failed to verify certificate: x509: certificate signed by unknown authority`)},
		{apply.ClassWebhookUnready, status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w.example.io": failed to call webhook: Post "https://w.demo.svc:443/v": no endpoints available for service "w"`)},
		{apply.ClassWebhookUnready, status(500, metav1.StatusReasonInternalError, `conversion webhook for ex.io/v1, Kind=A failed: Post "https://w.demo.svc:443/c": dial tcp: connect: connection refused`)},
		{apply.ClassDenied, status(403, metav1.StatusReasonForbidden, `admission webhook "w.example.io" denied the request: no`)},
		{apply.ClassDenied, status(400, metav1.StatusReasonBadRequest, `admission webhook "w.example.io" denied the request: the connection refused label is missing`)},
		{apply.ClassDenied, status(422, metav1.StatusReasonInvalid, `deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: replicas`)},
		{apply.ClassPriorityClass, forbidden(pods + "no PriorityClass with name platform-critical was found")},
		// F17.
		{apply.ClassDuplicateKeys, status(500, "", `failed to create typed patch object (demo/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].env: duplicate entries for key [name="X"]`)},
		{apply.ClassDuplicateKeys, status(500, metav1.StatusReasonInternalError, `failed to create typed patch object (demo/dns; /v1, Kind=Service): .spec.ports: duplicate entries for key [port=80,protocol="TCP"]`)},
		{apply.ClassDuplicateKeys, status(500, "", `failed to create typed patch object (demo/web; apps/v1, Kind=Deployment): .spec.template.spec.volumes: duplicate entries for key [name="v"]`)},
		{apply.ClassInvalid, status(500, "", `failed to create typed patch object (demo/web; apps/v1, Kind=Deployment): .spec.replicaz: field not declared in schema`)},
		// F22.
		{apply.ClassNoMatch, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "ex.io", Kind: "B"}, SearchedVersions: []string{"v1"}}},
		{apply.ClassNoMatch, status(404, metav1.StatusReasonNotFound, "the server could not find the requested resource")},
		{apply.ClassNoMatch, status(404, metav1.StatusReasonNotFound, `no matches for kind "B" in version "ex.io/v1"`)},
		{apply.ClassNoMatch, &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: "bs"}}},
		{apply.ClassNotFound, status(404, metav1.StatusReasonNotFound, `namespaces "demo" not found`)},
		// The server, its store, or the way to it.
		{apply.ClassThrottled, status(429, metav1.StatusReasonTooManyRequests, "the server has received too many requests and has asked us to try again later")},
		{apply.ClassUnavailable, status(503, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request")},
		{apply.ClassUnavailable, status(504, metav1.StatusReasonTimeout, "Timeout: request did not complete within requested timeout")},
		{apply.ClassUnavailable, status(500, metav1.StatusReasonInternalError, "etcdserver: leader changed")},
		{apply.ClassUnavailable, status(500, metav1.StatusReasonInternalError, "etcdserver: request timed out")},
		{apply.ClassUnavailable, &url.Error{Op: "Patch", URL: "https://x", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}},
		{apply.ClassUnavailable, &url.Error{Op: "Patch", URL: "https://x", Err: &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}}},
		{apply.ClassUnavailable, &url.Error{Op: "Get", URL: "https://x", Err: io.ErrUnexpectedEOF}},
		{apply.ClassUnavailable, errors.New("http2: server sent GOAWAY and closed the connection")},
		{apply.ClassUnavailable, &url.Error{Op: "Get", URL: "https://x", Err: errors.New("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")}},
		{apply.ClassUnauthorized, status(401, metav1.StatusReasonUnauthorized, "Unauthorized")},
		{apply.ClassCanceled, &url.Error{Op: "Get", URL: "https://x", Err: context.Canceled}},
		{apply.ClassCanceled, fmt.Errorf("x: %w", context.DeadlineExceeded)},
		{apply.ClassNone, nil},
		{apply.ClassUnknown, errors.New("x509: certificate signed by unknown authority")},
	} {
		if got := apply.Classify(tt.err); got != tt.want {
			t.Errorf("%v\n  is %q, want %q", tt.err, got, tt.want)
		}
	}
}
