package images_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"jr2.dev/jr2/images"
)

// Load what Plan decided into the nodes of a kind cluster: without a registry, Deliver does.
func ExampleKind() {
	ctx := context.Background()
	decision, err := images.Plan(ctx, images.Request{
		Instance: "fx-hold", Context: "kind-dev", Kind: "dev", Platforms: []string{"linux/amd64"},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: "/srv/my-instance/images/default"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	connect := func(ctx context.Context) (images.Builder, error) { return images.Connect(ctx, images.ConnectOptions{}) }
	delivered, err := images.Deliver(ctx, decision, connect, images.Options{})
	if err != nil {
		log.Fatal(err) // a *images.KindLoadError says which nodes have the image and which have not
	}
	fmt.Println(delivered[images.DefaultKey].Ref)
}

// Which nodes a kind cluster has, and which of them are down.
func ExampleKind_Nodes() {
	kind := &images.Kind{Cluster: "dev"}
	defer kind.Close() //nolint:errcheck // it is only read
	nodes, err := kind.Nodes(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, node := range nodes {
		fmt.Println(node.Name(), node.Down())
	}
}

// Sweep the nodes of a kind cluster. The roots must be those of that cluster.
func ExampleSweepKind() {
	kind := &images.Kind{Cluster: "dev"}
	defer kind.Close() //nolint:errcheck // nothing is left to say to it
	roots := &images.Roots{}
	roots.Add("jr2-sandbox-fx-hold-default:e13447d07c4d-amd64")
	swept, err := images.SweepKind(context.Background(), kind, roots, images.SweepOptions{DryRun: true})
	for _, node := range swept {
		fmt.Println(node)
	}
	if err != nil {
		log.Fatal(err) // the nodes that could not be swept
	}
}

// The image as an archive, to be brought to wherever one likes.
func ExampleBuildKit_Archive() {
	ctx := context.Background()
	builder, err := images.Connect(ctx, images.ConnectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer builder.Close() //nolint:errcheck // nothing is left to say to it
	file, err := os.Create("toolbox.tar")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // Archive has written all of it
	err = builder.Archive(ctx, images.BuildRequest{Name: "toolbox", Dir: "toolbox", Ref: "toolbox:1", Platforms: []string{"linux/amd64"}}, file)
	fmt.Println(err)
}

// What a sweep keeps beside what the map names now.
func ExampleRecord_Replaced() {
	old := &images.Record{Sandbox: map[string]string{"default": "jr2-sandbox-fx-default:aaaaaaaaaaaa-amd64"}}
	next := &images.Record{Sandbox: map[string]string{"default": "jr2-sandbox-fx-default:bbbbbbbbbbbb-amd64"}}
	fmt.Println(old.Replaced(nil, next))
	// Output: [jr2-sandbox-fx-default:aaaaaaaaaaaa-amd64]
}
