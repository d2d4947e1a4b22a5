package apply_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// shared is the one real API server of this package's tests; each test has a namespace of its own.
var shared *devcluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // most of their time tests wait for the cluster
		panic(err)
	}
	os.Exit(func() int {
		roomy := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("256"), corev1.ResourcePods: resource.MustParse("10000")}
		cluster, err := devcluster.Start(context.Background(), devcluster.Options{
			Users: []devcluster.User{tenant(), writer()},
			Audit: true,
			Nodes: []devcluster.Node{{Allocatable: roomy}}, // the pods of all tests stay to the end
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "start a cluster:", err)
			return 1
		}
		defer cluster.Close()
		shared = cluster
		return m.Run()
	}())
}

// tenant may do everything that a converge does, in one namespace, but read or grant less than an admin.
func tenant() devcluster.User {
	all := []string{"get", "list", "watch", "create", "patch", "update", "delete"}
	return devcluster.User{Name: "tenant", Rules: map[string][]rbacv1.PolicyRule{"t-tenant": {
		{APIGroups: []string{""}, Resources: []string{"configmaps", "serviceaccounts"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "create", "patch"}}, // may not list
		{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"}, Verbs: all},
	}}}
}

func config(t *testing.T) *rest.Config {
	t.Helper()
	return shared.Config()
}

func typed(t *testing.T) kubernetes.Interface {
	t.Helper()
	cfg := config(t)
	cfg.QPS = -1
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// writer may create Secrets in one namespace, and not read or change them.
func writer() devcluster.User {
	return devcluster.User{Name: "writer", Rules: map[string][]rbacv1.PolicyRule{"t-writer": {
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch", "update", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
	}}}
}

// newNamespace makes a namespace named after the test.
func newNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	name := "t-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-", " ", "-", ",", "").Replace(t.Name()))
	ns, err := typed(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 57)] + "-", Labels: labels}, // a name has at most 63 characters
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// objects reads YAML documents; NS stands for the namespace.
func objects(t *testing.T, ns, text string) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	for _, doc := range strings.Split(strings.ReplaceAll(text, "NS", ns), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

func set(t *testing.T, ns, text string) *apply.Set {
	t.Helper()
	s, err := apply.NewSet("app", ns, objects(t, ns, text)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustSet is a set of another name.
func mustSet(t *testing.T, name, ns, text string) *apply.Set {
	t.Helper()
	s := set(t, ns, text)
	s.Name = name
	return s
}

// mustApply applies and fails the test on an error.
func mustApply(t *testing.T, s *apply.Set, opts apply.Options) *apply.Outcome {
	t.Helper()
	out, err := apply.Apply(t.Context(), config(t), s, opts)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return out
}
