package preflight_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/preflight"
)

// refusing answers dry runs of pods with an error; where that is about an account that the pod names, a pod without it is let in.
type refusing struct{ err error }

func (r refusing) Create(_ context.Context, pod *corev1.Pod, _ metav1.CreateOptions) (*corev1.Pod, error) {
	if strings.Contains(r.err.Error(), "/robot: ") && pod.Spec.ServiceAccountName != "robot" {
		return pod, nil
	}
	return nil, r.err
}

// refusedBy is what a server answers, with these words and causes.
func refusedBy(code int32, message string, causes ...metav1.CauseType) error {
	s := metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: metav1.StatusReasonForbidden, Message: message, Details: &metav1.StatusDetails{}}
	for _, cause := range causes {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// TestF23WhatLooksLikeMissingRights is case F23 before the first write, by the words of the server: each means something of its own, and none is missing
// rights.
func TestF23WhatLooksLikeMissingRights(t *testing.T) {
	const pods = `pods "api-x" is forbidden: `
	const missing = "warn pod-needs-missing Deployment demo/api: its pods need the service account "
	leaves := `refuse namespace-terminating Namespace demo: refusing: namespace "demo" is being deleted, and nothing new is let in. Wait until it is gone`
	plain := workloadIn("demo", "Deployment", "api", "", "{containers: [{name: a, image: a}]}")
	as := func(account string) string {
		return workloadIn("demo", "Deployment", "api", "", "{serviceAccountName: "+account+", containers: [{name: a, image: a}]}")
	}
	brought := func(namespace string) string {
		return "---\n{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: " + namespace + ", name: robot}}\n"
	}
	for name, test := range map[string]struct {
		text string
		err  error
		want []string
	}{
		"the default account is on its way": {plain, refusedBy(403, pods+`error looking up service account demo/default: serviceaccount "default" not found`), nil},
		"the default account, named":        {as("default"), refusedBy(403, pods+`error looking up service account demo/default: serviceaccount "default" not found`), nil},
		"in the words of another release":   {plain, refusedBy(403, pods+`error looking up service account demo/default: serviceaccounts "default" not found`), nil},
		"an account of the set":             {as("robot") + brought("demo"), refusedBy(403, pods+`error looking up service account demo/default: serviceaccount "default" not found`), nil},
		"an account that nobody has": {as("robot"), refusedBy(403, pods+`error looking up service account demo/robot: serviceaccount "robot" not found`),
			[]string{missing + "robot, which neither the set nor the cluster has: error looking up service account demo/robot: serviceaccount \"robot\" not found — create the service account robot, or correct its name"}},
		"an account of another namespace": {as("robot") + brought("other"), refusedBy(403, pods+`error looking up service account demo/robot: serviceaccount "robot" not found`), []string{missing + "robot"}},
		"the namespace leaves":            {plain, refusedBy(403, pods+"unable to create new content in namespace demo because it is being terminated", corev1.NamespaceTerminatingCause), []string{leaves}},
		"the cause alone":                 {plain, refusedBy(403, "in other words", corev1.NamespaceTerminatingCause), []string{leaves}},
		"the words alone":                 {plain, refusedBy(403, pods+"unable to create new content in namespace demo because it is being terminated"), []string{leaves}},
		"many workloads, one namespace": {plain + workloadIn("demo", "Job", "j", "", "{containers: [{name: a, image: a}]}"),
			refusedBy(403, pods+"unable to create new content in namespace demo because it is being terminated", corev1.NamespaceTerminatingCause), []string{leaves}},
		"missing rights": {plain, refusedBy(403, `pods is forbidden: User "ana" cannot create resource "pods" in API group "" in the namespace "demo"`),
			[]string{`note not-looked-at Namespace demo: cannot create resource "pods"`}},
		"no answer": {plain, errors.New("connection refused"), []string{"note not-looked-at Namespace demo: connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := preflight.SetFacts{DryRun: func(string) preflight.PodCreator { return refusing{test.err} }}
			says(t, preflight.Admission(t.Context(), manifests(t, test.text), facts), test.want...)
		})
	}
}

// TestF23NamespaceThatLeaves: a namespace that is being deleted is found whatever goes there, and nobody is asked about the pods.
func TestF23NamespaceThatLeaves(t *testing.T) {
	held := corev1.NamespaceCondition{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue,
		Message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"}
	demo := func(leaving *corev1.Namespace) *corev1.Namespace {
		leaving.Name = "demo"
		return leaving
	}
	phaseOnly := &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	noPhase := deleted(namespaceOf(""))
	noPhase.Status.Phase = ""
	const leaves = `refuse namespace-terminating Namespace demo: refusing: namespace "demo" is being deleted`
	object := func(kind string) string {
		return "---\n{apiVersion: v1, kind: " + kind + ", metadata: {namespace: demo, name: a}}\n"
	}
	for name, test := range map[string]struct {
		text      string
		namespace *corev1.Namespace
		want      []string
	}{
		"a workload": {workloadIn("demo", "Deployment", "api", "", "{containers: [{name: a, image: \""+pinned+"\"}]}"), demo(deleted(namespaceOf(""), held)),
			[]string{leaves + " — Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances, and nothing new is let in"}},
		"a map":                           {object("ConfigMap"), demo(deleted(namespaceOf(""))), []string{leaves + ", and nothing new"}},
		"a Secret and a Service":          {object("Secret") + object("Service"), demo(deleted(namespaceOf("app"))), []string{leaves}},
		"the namespace of the set":        {namespaceYAML("demo", ""), demo(deleted(namespaceOf(""))), []string{leaves}},
		"a custom resource":               {"---\n{apiVersion: ex.io/v1, kind: Goose, metadata: {namespace: demo, name: g}}\n", demo(deleted(namespaceOf(""))), []string{leaves}},
		"the phase alone":                 {object("ConfigMap"), demo(phaseOnly), []string{leaves}},
		"the moment of deletion alone":    {object("ConfigMap"), demo(noPhase), []string{leaves}},
		"a level arrives too":             {namespaceYAML("demo", enforce+": restricted") + workloadIn("demo", "Deployment", "api", "", "{containers: [{name: a, image: \""+pinned+"\"}]}"), demo(deleted(namespaceOf(""))), []string{leaves}},
		"one that stays":                  {object("ConfigMap"), demo(namespaceOf("")), nil},
		"another kind of the same name":   {"---\n{apiVersion: ex.io/v1, kind: Namespace, metadata: {name: demo}}\n", demo(deleted(namespaceOf(""))), nil},
		"what lives in no namespace":      {"---\n{apiVersion: v1, kind: Node, metadata: {name: demo}}\n", demo(deleted(namespaceOf(""))), nil},
		"a namespace that nobody goes to": {"---\n{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other, name: a}}\n", demo(deleted(namespaceOf(""))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			facts := preflight.SetFacts{
				Nodes: []corev1.Node{node("a")}, Pods: []corev1.Pod{}, Webhooks: (&webhookCluster{}).reader(), Images: registry,
				Namespaces: map[string]*corev1.Namespace{"demo": test.namespace, "other": {}},
				DryRun: func(string) preflight.PodCreator {
					return refusing{errors.New("nothing to ask about")}
				},
			}
			says(t, preflight.Set(t.Context(), manifests(t, test.text), facts), test.want...)
		})
	}
}

// TestF23ARealNamespaceThatLeaves: with and without the right to read namespaces.
func TestF23ARealNamespaceThatLeaves(t *testing.T) {
	t.Parallel()
	client := clientFor(t, sharedCluster(t).Config())
	check := admissionChecker{client}
	makeNamespace(t, client, "f23", nil)
	release := holdNamespace(t, client, "f23")
	defer release()
	must(t, client.CoreV1().Namespaces().Delete(t.Context(), "f23", metav1.DeleteOptions{}))
	text := workloadIn("f23", "Deployment", "api", "", "{containers: [{name: a, image: a}]}") + workloadIn("f23", "Job", "j", "", "{restartPolicy: Never, containers: [{name: a, image: a}]}")
	const leaves = "refuse namespace-terminating Namespace f23: is being deleted"
	says(t, check.findings(t, text, preflight.SetFacts{}), leaves)
	eventually(t, "the namespace tells what holds it", func() bool {
		return len(check.live(t)["f23"].Status.Conditions) > 0
	})
	says(t, check.findings(t, text, preflight.SetFacts{Namespaces: check.live(t)}), "refuse namespace-terminating Namespace f23: has finalizers remaining: example.com/hold in 1 resource instances, and nothing new is let in")
}

// holdNamespace puts something into a namespace that keeps it from going, until release is called.
func holdNamespace(t *testing.T, client kubernetes.Interface, name string) (release func()) {
	t.Helper()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	_, err := client.CoreV1().ConfigMaps(name).Create(t.Context(), held, metav1.CreateOptions{})
	must(t, err)
	return func() {
		_, err := client.CoreV1().ConfigMaps(name).Patch(t.Context(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		must(t, err)
	}
}
