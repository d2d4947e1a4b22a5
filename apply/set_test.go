package apply_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
)

// Field case F01: one value that is not a string would erase all the others.
func TestNewSetRefusesLabelsThatAreNotStrings(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"boolean", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {team: core, debug: true}}}`, "ConfigMap a: metadata.annotations.debug: want string, got boolean"},
		{"yes", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {flag: yes}}}`, "ConfigMap a: metadata.annotations.flag: want string, got boolean"},
		{"number", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {tier: 1, app: web}}}`, "ConfigMap a: metadata.labels.tier: want string, got number"},
		{"template", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {annotations: {live: true}}}}}`, "Deployment.apps a: spec.template.metadata.annotations.live: want string, got boolean"},
		{"cron job", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {metadata: {labels: {v: 1.5}}}}}}}`, "CronJob.batch a: spec.jobTemplate.spec.template.metadata.labels.v: want string, got number"},
		{"claim template", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {labels: {x: null}}}]}}`, "StatefulSet.apps a: spec.volumeClaimTemplates[0].metadata.labels.x: want string, got null"},
		{"list", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: [x]}}`, "ConfigMap a: metadata.labels: want object, got array"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantProblem(t, tt.want, tt.doc) })
	}
	if _, err := apply.NewSet("s", "ns", objects(t, "ns", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {on: "true"}}}`)...); err != nil {
		t.Errorf("a quoted value: %v", err)
	}
}

// Values of ConfigMaps and Secrets are text too, and of a Secret the server's words could not be told.
func TestNewSetRefusesValuesThatAreNoText(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"boolean", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {user: ana, answer: y}}`, "Secret a: stringData.answer: want string, got boolean"},
		{"number", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {port: 8080}}`, "ConfigMap a: data.port: want string, got number"},
		{"object", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {user: {name: hush}}}`, "Secret a: data.user: want string, got object"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantProblem(t, tt.want, tt.doc) })
	}
}

// Field case F17: the server refuses these with an error that names no object of the set.
func TestNewSetRefusesRepeatedKeys(t *testing.T) {
	pod := func(container string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [{name: c, ` + container + `}]}}}}`
	}
	podWith := func(fields string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {` + fields + `}}}}`
	}
	for _, tt := range []struct{ name, doc, want string }{
		{"two names on one port", pod(`ports: [{name: a, containerPort: 8080, protocol: TCP}, {name: b, containerPort: 8080}]`), `spec.template.spec.containers[0].ports[1]: duplicate entries for key [containerPort=8080,protocol="TCP"]`},
		{"env", pod(`env: [{name: X, value: a}, {name: Y}, {name: X, value: b}]`), `spec.template.spec.containers[0].env[2]: duplicate entries for key [name="X"]`},
		{"mount", pod(`volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}]`), `duplicate entries for key [mountPath="/x"]`},
		{"service port", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{name: x, port: 80}, {name: y, port: 80}]}}`, `Service a: spec.ports[1]: duplicate entries for key [port=80,protocol="TCP"]`},
		{"address of a host", podWith(`hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]`), `spec.template.spec.hostAliases[1]: duplicate entries for key [ip="10.0.0.1"]`},
		{"spread", podWith(`topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}, {topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 2}]`), `spec.template.spec.topologySpreadConstraints[1]: duplicate entries for key [topologyKey="zone",whenUnsatisfiable="DoNotSchedule"]`},
		{"gate", podWith(`schedulingGates: [{name: a.example.com/x}, {name: a.example.com/x}]`), `spec.template.spec.schedulingGates[1]: duplicate entries for key [name="a.example.com/x"]`},
		{"device", podWith(`resourceClaims: [{name: gpu}, {name: gpu}]`), `spec.template.spec.resourceClaims[1]: duplicate entries for key [name="gpu"]`},
		{"device of a container", pod(`resources: {claims: [{name: gpu}, {name: gpu}]}`), `spec.template.spec.containers[0].resources.claims[1]: duplicate entries for key [name="gpu"]`},
		{"webhook", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: w.example.com}, {name: w.example.com}]}`, `ValidatingWebhookConfiguration.admissionregistration.k8s.io a: webhooks[1]: duplicate entries for key [name="w.example.com"]`},
		{"condition of a webhook", `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: w.example.com, matchConditions: [{name: c}, {name: c}]}]}`, `webhooks[0].matchConditions[1]: duplicate entries for key [name="c"]`},
		{"variable of a policy", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a}, spec: {variables: [{name: v}, {name: v}]}}`, `spec.variables[1]: duplicate entries for key [name="v"]`},
		{"secret of an account", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: s}, {name: s}]}`, `secrets[1]: duplicate entries for key [name="s"]`},
		{"init container", `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {initContainers: [{name: i}, {name: i}]}}`, `Pod a: spec.initContainers[1]: duplicate entries for key [name="i"]`},
	} {
		t.Run(tt.name, func(t *testing.T) { wantProblem(t, tt.want, tt.doc) })
	}
	for name, good := range map[string]string{
		"one port with two protocols": `{apiVersion: v1, kind: Service, metadata: {name: dns}, spec: {ports: [{name: u, port: 53, protocol: UDP}, {name: t, port: 53, protocol: TCP}]}}`,
		"one zone with two answers":   podWith(`topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]`),
		"an atomic list":              podWith(`tolerations: [{key: a}, {key: a}]`),
		"another group's kind":        `{apiVersion: example.com/v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: s}, {name: s}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := apply.NewSet("s", "ns", objects(t, "ns", good)...); err != nil {
				t.Error(err)
			}
		})
	}
}

// Field case F25: an empty selector, which the server would take for an attempt to change the one that it made, is left out, of the Jobs of a
// CronJob too; one that says something is not.
func TestAnEmptySelectorOfAJobIsLeftOut(t *testing.T) {
	const cron = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "0 0 * * *", jobTemplate: {spec: {selector: {}}}}}`
	for _, tt := range []struct {
		name, doc string
		path      []string
		stays     bool
	}{
		{"a Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {selector: {}}}`, []string{"spec", "selector"}, false},
		{"the Jobs of a CronJob", cron, []string{"spec", "jobTemplate", "spec", "selector"}, false},
		{"a selector that says something", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}}}`, []string{"spec", "selector"}, true},
		{"a selector by hand", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {}}}`, []string{"spec", "selector"}, true},
		{"another kind", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {}}}`, []string{"spec", "selector"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := apply.NewSet("s", "ns", objects(t, "ns", tt.doc)...)
			if err != nil {
				t.Fatal(err)
			}
			if _, there, err := unstructured.NestedMap(s.Objects[0].Object, tt.path...); there != tt.stays || err != nil {
				t.Errorf("it is there: %t, %v", there, err)
			}
		})
	}
}

func wantProblem(t *testing.T, want, doc string) {
	t.Helper()
	_, err := apply.NewSet("s", "ns", objects(t, "ns", doc)...)
	var bad *apply.SetError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNewSetNamesBothOfADuplicate(t *testing.T) {
	_, err := apply.NewSet("s", "ns",
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}})
	if err == nil || !strings.Contains(err.Error(), "object 3 is object 1 again (ConfigMap ns/a and ConfigMap ns/a)") {
		t.Errorf("got %v", err)
	}
}

func TestNewSetFillsInKindsAndDropsWhatTheServerSays(t *testing.T) {
	whole := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "z", "uid": "u", "resourceVersion": "1"}, "spec": map[string]any{"n": 3}}} // a Go int
	s, err := apply.NewSet("s", "ns", whole,
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{}}}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		&corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, {ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range s.Objects {
		names = append(names, apply.RefOf(o).String())
		text, _ := o.MarshalJSON()
		for _, bad := range []string{"creationTimestamp", `"status"`, `"uid"`, `"resourceVersion"`} {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s is left in %s", bad, text)
			}
		}
	}
	want := "Namespace n1, Namespace n2, CustomResourceDefinition.apiextensions.k8s.io c, StatefulSet.apps b, Thing.example.com z"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if _, ok := whole.Object["metadata"].(map[string]any)["uid"]; !ok {
		t.Error("the caller's object was changed")
	}
}
