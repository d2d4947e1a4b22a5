package operatorimage_test

import (
	"context"
	"fmt"
	"log"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/operatorimage"
)

func ExamplePush() {
	ctx := context.Background()
	registry, err := devcluster.StartRegistry(ctx, devcluster.RegistryOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close()
	ref, err := registry.Reference("jr2-operator:0.3.0")
	if err != nil {
		log.Fatal(err)
	}
	binary := []byte("what operatorimage.Compile makes of operatorimage.Package")
	_, err = operatorimage.Push(ctx, ref, map[string][]byte{"amd64": binary}, registry.RemoteOptions(ctx)...)
	fmt.Println(ref.Context().RepositoryStr(), err)
	// Output: jr2-operator <nil>
}
