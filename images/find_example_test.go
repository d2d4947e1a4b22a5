package images_test

import (
	"context"
	"errors"
	"fmt"

	"jr2.dev/jr2/images"
)

// Whether a delivery would find a builder, before anything is begun.
func ExampleFind() {
	found, err := images.Find(context.Background(), images.ConnectOptions{Address: "unix:///nowhere/buildkitd.sock"})
	var none *images.NoBuilderError
	switch {
	case errors.As(err, &none):
		fmt.Println(none.Tried[0].Place)
	case err != nil:
		fmt.Println("it answers and does not say what it builds for:", err)
	case found.Starts:
		fmt.Println("one would be started, for", found.Platforms)
	default:
		fmt.Println(found.Place, "builds for", found.Platforms)
	}
	// Output: BuildKit at unix:///nowhere/buildkitd.sock (named by BUILDKIT_HOST or the options)
}
