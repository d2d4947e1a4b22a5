package apply_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
)

func ExampleInventoryName() {
	fmt.Println(apply.InventoryName("jr2-operator"))
	// Output: jr2-inventory-jr2-operator
}

func ExampleRefOf() {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "demo", "name": "web"},
	}}
	fmt.Println(apply.RefOf(object))
	// Output: Deployment.apps demo/web
}

func ExampleOwned() {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = apply.Owned(context.Background(), client, "jr2-operator", "jr2-system")
	fmt.Println(apply.Classify(err)) // an inventory that cannot be read is never an empty one
	// Output: unavailable
}

func ExampleWaitNamespaceGone() {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = apply.WaitNamespaceGone(ctx, client, "team-a", "5f1c", 0, nil)
	fmt.Println(apply.Classify(err))
	// Output: canceled
}
