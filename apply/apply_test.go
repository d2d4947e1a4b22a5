package apply_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

const stack = `apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: NS}
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: words, namespace: NS}
stringData: {word: hush}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: NS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web, namespace: NS}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: NS}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: state, namespace: NS}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers: [{name: web, image: "registry.example/web:1", resources: {requests: {cpu: 1000m, memory: 1000M}, limits: {memory: 1000M}}}]`

func TestApplyCreatesThenChangesNothing(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, stack)
	first := mustApply(t, s, apply.Options{Prune: true})
	if got := first.Count(apply.Created); got != len(s.Objects) || first.Changed() != got {
		t.Fatalf("first run: %+v", first.Objects)
	}
	if _, err := apply.WaitRollout(t.Context(), typed(t), apply.Workload{Kind: "Deployment", Namespace: ns, Name: "web"}, apply.RolloutOptions{}); err != nil {
		t.Fatal(err)
	}
	before := version(t, ns)
	for range 2 {
		again := mustApply(t, s, apply.Options{Prune: true})
		if again.Changed() != 0 || again.Count(apply.Unchanged) != len(s.Objects) {
			t.Fatalf("second run: %+v", again.Objects)
		}
	}
	if after := version(t, ns); after != before {
		t.Errorf("the Deployment was written: generation %d, then %d", before, after)
	}
}

func version(t *testing.T, ns string) int64 {
	t.Helper()
	d, err := typed(t).AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Generation
}
