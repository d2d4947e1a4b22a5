package images_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"jr2.dev/jr2/images"
)

func ExampleRef() {
	ref, err := images.Ref("registry.example.com/team", "my-instance", "default", "6389bdf72d50", []string{"linux/arm64", "linux/amd64"})
	fmt.Println(ref, err)
	// Output: registry.example.com/team/jr2-sandbox-my-instance-default:6389bdf72d50-amd64-arm64 <nil>
}

func ExampleContextFolder() {
	dir, name, err := images.ContextFolder("file:///srv/my%20instance/workflows/toolbox")
	fmt.Println(dir, name, err)
	// Output: /srv/my instance/workflows/toolbox toolbox <nil>
}

func ExampleContextDigest() {
	dir := exampleFolder()
	defer os.RemoveAll(dir)
	digest, err := images.ContextDigest(context.Background(), dir)
	fmt.Println(digest, err)
	// Output: e13447d07c4d <nil>
}

// A registry beside a kind cluster: pushed by one name, pulled by another.
func ExampleParseLocalRegistry() {
	local, err := images.ParseLocalRegistry(map[string]string{ // the data of ConfigMap kube-public/local-registry-hosting
		"localRegistryHosting.v1": "host: localhost:5001\nhostFromContainerRuntime: kind-registry:5000\n",
	})
	fmt.Println(local.PullName("localhost:5001/team"), err)
	// Output: kind-registry:5000/team <nil>
}

func ExamplePlan() {
	dir := exampleFolder()
	defer os.RemoveAll(dir)
	d, err := images.Plan(context.Background(), images.Request{
		Instance: "fx-hold", Registry: "registry.example.com/team", Context: "prod",
		Platforms: []string{"linux/amd64"},
		Contexts:  []images.Context{{Key: images.DefaultKey, Name: "default", Dir: dir}},
		// Previous: the record that the cluster holds.
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, img := range d.Images {
		fmt.Println(img.Ref, img.Skip, img.Why)
	}
	// Output: registry.example.com/team/jr2-sandbox-fx-hold-default:e13447d07c4d-amd64 false the cluster has no record of it
}

// Deliver what Plan decided; BuildKit is looked for only when something has to be built.
func ExampleDeliver() {
	ctx := context.Background()
	d := &images.Decision{Instance: "fx-ping"} // as Plan returns it; this Instance has no image
	delivered, err := images.Deliver(ctx, d, func(ctx context.Context) (images.Builder, error) {
		return images.Connect(ctx, images.ConnectOptions{Address: os.Getenv("BUILDKIT_HOST")})
	}, images.Options{Events: func(e images.Event) {
		if b, ok := e.(images.Building); ok {
			fmt.Println("building", b.Ref)
		}
	}})
	fmt.Println(len(delivered), err)
	record := images.Record{}.With(delivered) // goes up with the Orchestrator, after every delivery
	text, _ := record.Marshal()
	fmt.Println(string(text))
	// Output:
	// 0 <nil>
	// {}
}

func ExampleConnect() {
	_, err := images.Connect(context.Background(), images.ConnectOptions{Address: "unix:///nowhere/buildkitd.sock"})
	fmt.Println(err)
	// Output:
	// no builder answers, and an image has to be built — start Docker or buildkitd, or set BUILDKIT_HOST to the address of one. Tried:
	//   BuildKit at unix:///nowhere/buildkitd.sock (named by BUILDKIT_HOST or the options): stat /nowhere/buildkitd.sock: no such file or directory
}

func exampleFolder() string {
	dir, err := os.MkdirTemp("", "default")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(holdFiles()["Dockerfile"]), 0o644); err != nil {
		log.Fatal(err)
	}
	return dir
}

// Remove what no root names from a store of images, here one in memory.
func ExampleSweep() {
	roots := &images.Roots{}
	roots.Add("registry.example.com/team/jr2-sandbox-app-default:6389bdf72d50-amd64") // what pods and Sandboxes run
	err := roots.AddMap([]byte(`{"sandbox": {"default": "registry.example.com/team/jr2-sandbox-app-default:6389bdf72d50-amd64"}}`))
	store := &shelf{held: []images.Stored{
		{ID: "sha256:1", Tags: []string{"registry.example.com/team/jr2-sandbox-app-default:6389bdf72d50-amd64"}, Bytes: 90_000_000},
		{ID: "sha256:2", Tags: []string{"registry.example.com/team/jr2-sandbox-app-default:e13447d07c4d-amd64"}, Bytes: 80_000_000},
	}}
	swept, failed := images.Sweep(context.Background(), store, roots, images.SweepOptions{DryRun: true})
	fmt.Println(swept, err, failed)
	fmt.Println(swept.Removed)
	// Output:
	// images: would sweep 1 (up to 80.0 MB), 1 needed <nil> <nil>
	// [registry.example.com/team/jr2-sandbox-app-default:e13447d07c4d-amd64]
}

func ExampleConnectDocker() {
	_, err := images.ConnectDocker(context.Background(), images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": "unix:///nowhere/docker.sock"}})
	fmt.Println(err)
	// Output: Docker Engine at unix:///nowhere/docker.sock (DOCKER_HOST is set) does not answer: stat /nowhere/docker.sock: no such file or directory
}
