package v1alpha1_test

import (
	"fmt"

	"jr2.dev/jr2/placement/v1alpha1"
)

func ExampleGroupVersion() {
	fmt.Println(v1alpha1.GroupVersion())
	// Output: core.jr2.dev/v1alpha1
}
