package apply_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

// TestOneCodeManyCauses is the table at the end of the field cases, row by row: a body in the words of the row, others of the same cause, and whether the
// request is made again.
func TestOneCodeManyCauses(t *testing.T) {
	const (
		pods    = `pods "web-1" is forbidden: `
		failed  = `Internal error occurred: failed calling webhook "w.example.io": failed to call webhook: Post "https://w.demo.svc:443/v?timeout=10s": `
		patched = "failed to create typed patch object (demo/web; apps/v1, Kind=Deployment): "
	)
	for _, tt := range []struct {
		row    string
		code   int32
		class  apply.Class
		again  bool
		bodies []string
	}{
		{"a quota that is full", 403, apply.ClassQuotaWait, true, []string{
			pods + "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1",
			`services "s" is forbidden: exceeded quota: q, requested: services=1, used: services=5, limited: services=5`,
			`persistentvolumeclaims "c" is forbidden: exceeded quota: q, requested: requests.storage=1Gi, used: requests.storage=9728Mi, limited: requests.storage=10Gi`,
		}},
		{"a quota that never has room", 403, apply.ClassQuotaNever, false, []string{
			pods + "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=600m, limited: requests.cpu=1",
			pods + "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0",
			`persistentvolumeclaims "c" is forbidden: exceeded quota: q, requested: requests.storage=11Gi, used: requests.storage=0, limited: requests.storage=10Gi`,
		}},
		{"a quota that wants requests", 403, apply.ClassQuotaUnspecified, false, []string{
			pods + "failed quota: q: must specify requests.cpu for: app",
			pods + "failed quota: compute: must specify limits.cpu for: app; limits.memory for: app",
			pods + "failed quota: q: must specify requests.nvidia.com/gpu for: init,app",
		}},
		{"pod security", 403, apply.ClassPodSecurity, false, []string{
			pods + `violates PodSecurity "restricted:v1.34": unrestricted capabilities (container "dist" must set securityContext.capabilities.drop=["ALL"])`,
			pods + `violates PodSecurity "baseline:v1.36": host namespaces (hostNetwork=true), privileged (container "a" must not set securityContext.privileged=true)`,
			`pods "web-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)`,
		}},
		{"an account that is on its way", 403, apply.ClassServiceAccount, true, []string{
			pods + `error looking up service account ns/default: serviceaccount "default" not found`,
			`pods "job-x" is forbidden: error looking up service account ns/runner: serviceaccounts "runner" not found`,
			`pods "a" is forbidden: error looking up service account a-b/c.d: serviceaccount "c.d" not found`,
		}},
		{"a namespace that goes", 403, apply.ClassNamespaceTerminating, false, []string{
			`configmaps "c" is forbidden: unable to create new content in namespace demo because it is being terminated`,
			`roles.rbac.authorization.k8s.io "r" is forbidden: unable to create new content in namespace a because it is being terminated`,
			pods + `unable to create new content in namespace demo because it is being terminated`,
		}},
		{"escalation", 403, apply.ClassEscalation, false, []string{
			`roles.rbac.authorization.k8s.io "r" is forbidden: user "ana" (groups=["a"]) is attempting to grant RBAC permissions not currently held:` + "\n" + `{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}`,
			`clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "system:serviceaccount:a:b" is attempting to grant RBAC permissions not currently held:` + "\n" + `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`,
			`rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "ana" is attempting to grant RBAC permissions not currently held: {Resources:["pods/exec"], Verbs:["create"]}`,
		}},
		{"missing rights", 403, apply.ClassForbidden, false, []string{
			`x.y "a" is forbidden: User "ana" cannot patch resource "x" in API group "y" in the namespace "demo"`,
			`clusterroles.rbac.authorization.k8s.io is forbidden: User "ana" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`,
			`pods "a" is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods/exec" in API group "" in the namespace "a": denied by an authorizer`,
		}},
		{"another manager", 409, apply.ClassConflict, false, []string{
			`Apply failed with 1 conflict: conflict with "kube-controller-manager" with subresource "scale" using apps/v1: .spec.replicas`,
			`Apply failed with 1 conflict: conflict with "kubectl-edit" using v1: .data.a`,
			"Apply failed with 3 conflicts: conflicts with \"helm\" using apps/v1:\n- .spec.replicas\nconflicts with \"flux\":\n- .spec.paused\n- .metadata.labels.a",
		}},
		{"an old one that goes", 409, apply.ClassBeingDeleted, true, []string{
			`object is being deleted: jobs.batch "migrate" already exists`,
			`object is being deleted: persistentvolumeclaims "data" already exists`,
			`object is being deleted: sandboxes.core.jr2.dev "a" already exists`,
		}},
		{"what can't be changed", 422, apply.ClassImmutable, false, []string{
			"Deployment.apps \"d\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
			`Job.batch "j" is invalid: spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable`,
			`Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set`,
			`PersistentVolumeClaim "c" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests`,
		}},
		{"a webhook that is late", 500, apply.ClassWebhookUnready, true, []string{
			failed + "dial tcp 10.0.0.1:443: connect: connection refused",
			failed + "tls: failed to verify certificate: x509: certificate signed by unknown authority",
			failed + `no endpoints available for service "w"`,
			failed + `service "w" not found`,
			failed + "context deadline exceeded",
		}},
		{"a key twice", 500, apply.ClassDuplicateKeys, false, []string{
			patched + `errors: .spec.template.spec.containers[name="c"].env: duplicate entries for key [name="X"]`,
			patched + `errors: .spec.template.spec.containers[name="c"].ports: duplicate entries for key [containerPort=8080,protocol="TCP"]`,
			`failed to create typed patch object (demo/dns; /v1, Kind=Service): errors: .spec.ports: duplicate entries for key [port=80,protocol="TCP"]`,
		}},
		{"a kind that is new", 404, apply.ClassNoMatch, true, []string{
			`no matches for kind "B" in version "ex.io/v1"`,
			"the server could not find the requested resource",
			`404 page not found`,
		}},
	} {
		t.Run(tt.row, func(t *testing.T) {
			for _, body := range tt.bodies {
				err := status(tt.code, "", body)
				for _, err := range []error{err, fmt.Errorf("write it: %w", err)} {
					if got := apply.Classify(err); got != tt.class || got.Retryable() != tt.again {
						t.Errorf("%v\n  is %q (again: %t), want %q", err, got, got.Retryable(), tt.class)
					}
				}
			}
		})
	}
	// What only looks like one of them.
	for want, err := range map[apply.Class]error{
		apply.ClassDenied:   status(403, metav1.StatusReasonForbidden, `admission webhook "w.example.io" denied the request: exceeded quota: ask the team`),
		apply.ClassNotFound: status(404, metav1.StatusReasonNotFound, `jobs.batch "migrate" not found`),
		apply.ClassInvalid:  status(422, metav1.StatusReasonInvalid, `Deployment.apps "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`),
	} {
		if got := apply.Classify(err); got != want {
			t.Errorf("%v\n  is %q, want %q", err, got, want)
		}
	}
}
