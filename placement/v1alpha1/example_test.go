package v1alpha1_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/placement/v1alpha1"
)

func ExampleCRDs() {
	crds, err := v1alpha1.CRDs()
	for _, crd := range crds {
		fmt.Println(crd.Name)
	}
	fmt.Println(err)
	// Output:
	// repos.core.jr2.dev
	// sandboxes.core.jr2.dev
	// <nil>
}

func ExampleAddToScheme() {
	scheme := runtime.NewScheme()
	err := v1alpha1.AddToScheme(scheme)
	fmt.Println(scheme.Recognizes(v1alpha1.GroupVersion().WithKind("Sandbox")), err)
	// Output: true <nil>
}
