package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"jr2.dev/jr2/preflight"
)

func ExampleTypecheck() {
	root, err := os.MkdirTemp("", "instance-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	result, err := preflight.Typecheck(context.Background(), root, preflight.TypecheckOptions{Trusted: true})
	var refused *preflight.TypecheckError
	switch {
	case errors.As(err, &refused):
		fmt.Println(len(refused.Output), "lines of the compiler")
	case err != nil:
		fmt.Println(err)
	case result.Skipped != "":
		fmt.Println("skipped:", result.Skipped)
	}
	// Output: skipped: the instance has no tsconfig.json
}
