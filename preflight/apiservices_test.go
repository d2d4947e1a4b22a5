package preflight_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// TestAPIServices has a cluster of its own: an API that nobody serves keeps every namespace of its cluster.
func TestAPIServices(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}, Users: []devcluster.User{{Name: "ana"}}})
	client := clientFor(t, cluster.Config())
	look := func(client kubernetes.Interface, needed ...schema.GroupVersion) []preflight.Finding {
		t.Helper()
		findings, err := preflight.APIServices(t.Context(), client.Discovery().RESTClient(), needed)
		must(t, err)
		return findings
	}
	config, err := cluster.ConfigFor("ana")
	must(t, err)
	stranger := clientFor(t, config)
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	// All APIs of a new cluster are the API server's own.
	if found := look(client, apps); len(found) > 0 {
		t.Errorf("a clean cluster: %+v", found)
	}
	if found := look(stranger, apps); len(found) > 0 {
		t.Errorf("a clean cluster to a stranger: %+v", found)
	}

	_, err = client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "refusing"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"},
	}, metav1.CreateOptions{})
	must(t, err)
	absent, refusing := schema.GroupVersion{Group: "metrics.example.test", Version: "v1beta1"}, schema.GroupVersion{Group: "other.example.test", Version: "v1"}
	aggregate(t, cluster, absent, "nowhere")
	aggregate(t, cluster, refusing, "refusing")
	// One that a CustomResourceDefinition brings is registered too, and is the API server's own.
	must(t, applyCRD(t, cluster))

	var found []preflight.Finding
	eventually(t, "both are found to be away", func() bool {
		found = look(client)
		return len(found) == 2
	})
	for i, want := range []struct{ object, says, fix string }{
		{"APIService v1.other.example.test", `(Service default/refusing) does not answer: FailedDiscoveryCheck: `, "kubectl delete apiservice v1.other.example.test"},
		{"APIService v1beta1.metrics.example.test", `(Service default/nowhere) does not answer: ServiceNotFound: service/nowhere in "default" is not present`, "kubectl delete apiservice v1beta1.metrics.example.test"},
	} {
		f := found[i]
		if f.Severity != preflight.Warn || f.Code != preflight.CodeAPIDown || f.Object != want.object || !strings.Contains(f.Message, want.says) ||
			!strings.Contains(f.Message, "no namespace that is deleted goes away") || !strings.HasSuffix(f.Message, f.Fix+" ("+want.fix+")") {
			t.Errorf("got %+v\nwant %+v", f, want)
		}
	}
	needed := look(client, apps, absent)
	if len(needed) != 2 || needed[0].Severity != preflight.Warn || needed[1].Severity != preflight.Refuse || !strings.HasPrefix(needed[1].Message, "refusing: the server behind metrics.example.test/v1beta1") {
		t.Errorf("one that is needed: %+v", needed)
	}

	// Who may not list APIServices learns it from discovery.
	eventually(t, "discovery calls both stale", func() bool {
		found = look(stranger, absent)
		return len(found) == 2
	})
	if found[0].Severity != preflight.Warn || found[1].Severity != preflight.Refuse || found[1].Object != "APIService v1beta1.metrics.example.test" || !strings.Contains(found[1].Message, "stale") {
		t.Errorf("to a stranger: %+v", found)
	}

	// What it warns of: a namespace stays.
	makeNamespace(t, client, "going", nil)
	must(t, client.CoreV1().Namespaces().Delete(t.Context(), "going", metav1.DeleteOptions{}))
	eventually(t, "the namespace says what keeps it", func() bool {
		namespace, err := client.CoreV1().Namespaces().Get(t.Context(), "going", metav1.GetOptions{})
		must(t, err)
		for _, condition := range namespace.Status.Conditions {
			if condition.Type == corev1.NamespaceDeletionDiscoveryFailure && condition.Status == corev1.ConditionTrue {
				return strings.Contains(condition.Message, absent.Group)
			}
		}
		return false
	})
}

// TestAPIServicesThatNobodyCouldRead: no answer is an error and no finding.
func TestAPIServicesThatNobodyCouldRead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "go away", http.StatusForbidden) }))
	defer server.Close()
	found, err := preflight.APIServices(t.Context(), clientFor(t, &rest.Config{Host: server.URL}).Discovery().RESTClient(), nil)
	if err == nil || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

// aggregate registers an API that a Service of the namespace default is to serve.
func aggregate(t *testing.T, cluster *devcluster.Cluster, version schema.GroupVersion, service string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version.Version + "." + version.Group},
		"spec": map[string]any{
			"group": version.Group, "version": version.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": service, "port": int64(1)},
		},
	}}
	client, err := dynamic.NewForConfig(cluster.Config())
	must(t, err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
}

func applyCRD(t *testing.T, cluster *devcluster.Cluster) error {
	t.Helper()
	schemaOf := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.local.example.test"},
		"spec": map[string]any{
			"group": "local.example.test", "scope": "Namespaced", "names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schemaOf}}},
		},
	}}
	client, err := dynamic.NewForConfig(cluster.Config())
	must(t, err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(t.Context(), object, metav1.CreateOptions{})
	return err
}
