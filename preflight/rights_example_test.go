package preflight_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"jr2.dev/jr2/preflight"
)

func ExampleSetRights() {
	client := fake.NewClientset() // a client of a real cluster goes here: kubernetes.NewForConfig(config). This one allows nothing.
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	client.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace"}}}}
	set := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team-a"}}}}
	findings, err := preflight.SetRights(context.Background(), client, set, preflight.SetRightsOptions{})
	if err != nil {
		fmt.Println(err)
	}
	for _, finding := range findings {
		fmt.Println(finding.Severity, finding.Code, finding.Object)
	}
	// Output:
	// refuse right-missing get namespaces in namespace team-a
	// refuse right-missing patch namespaces in namespace team-a
	// refuse right-missing create namespaces
}

// The roles with which somebody may bring a set and no more, from the kubeconfig that KUBECONFIG names.
func ExampleSetNeeds() {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Clean(os.Getenv("KUBECONFIG")))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	set := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "team-a"}}}}
	needs, grants, _, err := preflight.SetNeeds(context.Background(), client, set, preflight.SetRightsOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := preflight.RolesYAML(preflight.MinimalRoles("team-a-deployer", "alice", needs, grants))
	fmt.Println(text, err)
}

func ExampleRight_Fix() {
	fmt.Println(preflight.Right{Verb: "get", Resource: "pods", Namespace: "team-a"}.Fix("alice"))
	// Output: printf %s '{"apiVersion":"v1","items":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"jr2:get:pods","namespace":"team-a"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]},{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"jr2:get:pods","namespace":"team-a"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"jr2:get:pods"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}],"kind":"List"}' | kubectl auth reconcile -f -
}

func ExampleRefusedRight() {
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: `pods "web" is forbidden: User "alice" cannot get ` +
		`resource "pods/log" in API group "" in the namespace "team-a"`}}
	right, user, ok := preflight.RefusedRight(fmt.Errorf("read the log: %w", refused))
	fmt.Println(right, "for", user, ok)
	// Output: get pods/log in namespace team-a for alice true
}

func ExampleRaiseQuota() {
	fmt.Println(preflight.RaiseQuota("team-a", "exceeded quota: small, requested: limits.memory=1Gi,pods=1, used: limits.memory=512Mi,pods=4, limited: limits.memory=1Gi,pods=4"))
	// Output: kubectl -n team-a patch resourcequota small --type merge -p '{"spec":{"hard":{"limits.memory":"1536Mi","pods":"5"}}}'
}
