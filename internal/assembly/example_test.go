package assembly_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes/fake"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/assembly"
)

func ping() *config.Instance {
	return &config.Instance{
		Name: "ping", KitVersion: "0.3.0", Workflows: []config.Workflow{{Name: "ping"}},
		Modules: []config.Module{{Name: "ping", Source: []byte("export const machine = setup({}).createMachine({});\n")}},
	}
}

func ExampleBuild() {
	a, err := assembly.Build(ping(), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(a.Hash), a.Modules[0].Path, a.Manifest.Workflows)
	// Output: 12 workflows/ping.mjs [ping]
}

func ExampleOpen() {
	a, err := assembly.Build(ping(), nil)
	if err != nil {
		panic(err)
	}
	again, err := assembly.Open(a.Archive)
	fmt.Println(again.Hash == a.Hash, again.Manifest.Kit, err)
	// Output: true 0.3.0 <nil>
}

func ExampleCluster() {
	a, err := assembly.Build(ping(), nil)
	if err != nil {
		panic(err)
	}
	ctx, client := context.Background(), fake.NewClientset()
	publisher := assembly.Cluster(client, "ping", map[string]string{"jr2.dev/instance": "ping"})
	_, found, err := publisher.Current(ctx)
	fmt.Println(found, err)
	fmt.Println(publisher.Publish(ctx, a))
	fmt.Println(publisher.WaitCurrent(ctx, a.Hash))
	// Output:
	// false <nil>
	// <nil>
	// [ping] <nil>
}

func ExampleRead() {
	a, err := assembly.Build(ping(), nil)
	if err != nil {
		panic(err)
	}
	ctx, client := context.Background(), fake.NewClientset()
	if err := assembly.Cluster(client, "ping", nil).Publish(ctx, a); err != nil {
		panic(err)
	}
	current, err := assembly.Read(ctx, client, "ping")
	fmt.Println(current.Hash == a.Hash, current.Modules[0].Path, err)
	// Output: true workflows/ping.mjs <nil>
}
