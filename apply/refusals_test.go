package apply_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

// The real API server's refusals, as Apply reports them.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, before, doc string
		labels            map[string]string
		want              apply.Class
	}{
		{name: "quota never", before: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: NS}\nspec: {hard: {count/services: 0}}",
			doc: "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: NS}\nspec: {ports: [{port: 80}]}", want: apply.ClassQuotaNever},
		{name: "quota unstated", before: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: NS}\nspec: {hard: {requests.cpu: 1}}",
			doc: "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: NS}\nspec: {" + plainContainer + "}", want: apply.ClassQuotaUnspecified},
		{name: "pod security", labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			doc: "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: NS}\nspec: {" + plainContainer + "}", want: apply.ClassPodSecurity},
		{name: "account", doc: "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: NS}\nspec: {serviceAccountName: nobody, " + plainContainer + "}", want: apply.ClassServiceAccount},
		{name: "priority class", doc: "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: NS}\nspec: {priorityClassName: none, " + plainContainer + "}", want: apply.ClassPriorityClass},
		{name: "invalid", doc: "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: NS}\nspec: {ports: [{port: 0}]}", want: apply.ClassInvalid},
		{name: "unknown field", doc: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: NS}\ndatta: {a: b}", want: apply.ClassInvalid},
		{name: "no namespace", doc: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}", want: apply.ClassInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, tt.labels)
			if tt.before != "" {
				other := set(t, ns, tt.before)
				other.Name = "before"
				mustApply(t, other, apply.Options{})
				waitQuota(t, ns)
			}
			_, err := apply.Apply(t.Context(), config(t), set(t, ns, tt.doc), apply.Options{Retry: apply.Retry{Limit: 4 * time.Second, Quota: -1}})
			if got := apply.Classify(err); got != tt.want {
				t.Errorf("class %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

// Field case F25, of other kinds than Jobs: the server says in many ways that a field can't be changed, and all are told as that, by field,
// in an apply and in a plan. What was allowed to be made again is.
func TestImmutableFieldsAreNamed(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	const meta = "metadata: {name: fixed, namespace: NS}\n"
	rows := []struct{ name, doc, old, new, field string }{
		{"the selector of a Deployment", workload("Deployment", "nodeSelector: {no: where}, "+plainContainer), "app: web", "app: other", "spec.selector"},
		{"the service of a StatefulSet", "apiVersion: apps/v1\nkind: StatefulSet\n" + meta + "spec: {replicas: 0, serviceName: a, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" + plainContainer + "}}}",
			"serviceName: a", "serviceName: b", "spec"},
		{"the role of a binding", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n" + meta + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}", "view", "edit", "roleRef"},
		{"the environment of a pod", "apiVersion: v1\nkind: Pod\n" + meta + `spec: {serviceAccountName: fixed, nodeSelector: {no: where}, containers: [{name: a, image: "registry.example/a:1", env: [{name: A, value: "1"}]}]}`,
			`"1"`, `"2"`, "spec"},
		{"the account of pods", "apiVersion: v1\nkind: ServiceAccount\n" + meta, "", "", ""}, // of the pod above
		{"the type of a Secret", "apiVersion: v1\nkind: Secret\n" + meta + "type: example.com/a", "example.com/a", "example.com/b", "type"},
		{"the size of a claim", "apiVersion: v1\nkind: PersistentVolumeClaim\n" + meta + "spec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}", "ReadWriteOnce", "ReadWriteMany", "spec"},
		{"the maker of volumes", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NS}\nprovisioner: example.com/a", "example.com/a", "example.com/b", "provisioner"},
		{"the number of a class", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS}\nvalue: 7", "value: 7", "value: 8", "value"},
		{"the address of a Service", "apiVersion: v1\nkind: Service\n" + meta + "spec: {ports: [{port: 80}]}", "spec: {", "spec: {clusterIP: None, ", "spec.clusterIPs[0]"},
	}
	var all []string
	for _, row := range rows {
		all = append(all, row.doc)
	}
	mustApply(t, set(t, ns, join(all...)), apply.Options{})
	for _, row := range rows {
		if row.old == "" {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			moved := set(t, ns, strings.ReplaceAll(row.doc, row.old, row.new))
			_, err := apply.Apply(t.Context(), config(t), moved, apply.Options{})
			var fixed, planned *apply.ImmutableError
			if !errors.As(err, &fixed) || !errors.As(mustPlan(t, moved, apply.Options{}).Err(), &planned) {
				t.Fatalf("class %q: %v", apply.Classify(err), err)
			}
			if !slices.Contains(fixed.Fields, row.field) || !slices.Equal(fixed.Fields, planned.Fields) || !strings.Contains(err.Error(), apply.RefOf(moved.Objects[0]).String()) {
				t.Errorf("fields %q, planned %q: %v", fixed.Fields, planned.Fields, err)
			}
		})
	}
	for _, row := range rows[2:4] {
		moved := set(t, ns, strings.ReplaceAll(row.doc, row.old, row.new))
		kind := moved.Objects[0].GroupVersionKind().GroupKind()
		out := mustApply(t, moved, apply.Options{Recreate: []string{strings.TrimSuffix(kind.String(), ".")}})
		if out.Count(apply.Recreated) != 1 {
			t.Errorf("%s, allowed: %+v", row.name, out.Objects)
		}
	}
}

// waitQuota waits until the quota's status is there: before, the server says so in other words.
func waitQuota(t *testing.T, ns string) {
	t.Helper()
	w, err := typed(t).CoreV1().ResourceQuotas(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for {
		q, err := typed(t).CoreV1().ResourceQuotas(ns).Get(t.Context(), "q", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(q.Status.Hard) > 0 {
			return
		}
		<-w.ResultChan()
	}
}

// A quota that is full now is waited for, in its own words, until others leave; or not, when the caller says so.
func TestAFullQuotaIsWaitedFor(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mustSet(t, "quota", ns, "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: NS}\nspec: {hard: {count/services: 1}}"), apply.Options{})
	waitQuota(t, ns)
	// After the quota: what was there before is counted when the quota's controller has seen it.
	mustApply(t, mustSet(t, "before", ns, "apiVersion: v1\nkind: Service\nmetadata: {name: first, namespace: NS}\nspec: {ports: [{port: 80}]}"), apply.Options{})
	s := set(t, ns, "apiVersion: v1\nkind: Service\nmetadata: {name: second, namespace: NS}\nspec: {ports: [{port: 80}]}")
	if _, err := apply.Apply(t.Context(), config(t), s, apply.Options{Retry: apply.Retry{Quota: -1}}); apply.Classify(err) != apply.ClassQuotaWait {
		t.Fatalf("got %v", err)
	}
	said := ""
	out := mustApply(t, s, apply.Options{Retry: apply.Retry{Limit: time.Millisecond}, Events: func(e apply.Event) {
		if w, ok := e.(apply.Waiting); ok && said == "" {
			said = w.Reason
			if err := typed(t).CoreV1().Services(ns).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	}})
	if out.Count(apply.Created) != 1 || !strings.Contains(said, "exceeded quota: q, requested: count/services=1") {
		t.Errorf("%+v after waiting for %q", out.Objects, said)
	}
}

// Field cases F05 and F23: missing rights, escalation, and an identity that may read single objects but not lists.
func TestAnIdentityWithFewRights(t *testing.T) {
	const ns = "t-tenant"
	cfg, err := shared.ConfigFor("tenant")
	if err != nil {
		t.Fatal(err)
	}
	good := set(t, ns, `apiVersion: v1
kind: Service
metadata: {name: a, namespace: NS}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: b, namespace: NS}
spec: {ports: [{port: 80}]}`)
	for i, want := range []int{2, 0} {
		if out, err := apply.Apply(t.Context(), cfg, good, apply.Options{}); err != nil || out.Changed() != want {
			t.Errorf("run %d: %+v, %v", i+1, out.Objects, err)
		}
	}
	for want, doc := range map[apply.Class]string{
		apply.ClassForbidden:  "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: NS}",
		apply.ClassEscalation: "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: NS}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [\"*\"]}]",
	} {
		s := set(t, ns, doc)
		s.Name = string(want)
		if _, err := apply.Apply(t.Context(), cfg, s, apply.Options{}); apply.Classify(err) != want {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
