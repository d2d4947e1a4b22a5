package render_test

import (
	"fmt"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/render"
)

func hold() render.Input {
	kit, err := render.KitOf("0.3.0", nil)
	if err != nil {
		panic(err)
	}
	return render.Input{
		Instance:   &config.Instance{Name: "my-instance", Workflows: []config.Workflow{{Name: "hold", Workspaces: []config.Workspace{{}}}}},
		Kit:        kit,
		ImageMap:   "{}",
		SigningKey: config.NewSecret("the key that jr2-instance keeps"),
	}
}

func ExampleKitOf() {
	mirror := "localhost:5000/mirror/"
	kit, err := render.KitOf("0.3.0", &mirror)
	fmt.Println(kit.Orchestrator, err)
	// Output: localhost:5000/mirror/jr2-orchestrator:0.3.0 <nil>
}

func ExampleCompareVersions() {
	order, err := render.CompareVersions("1.2.0-rc.1", "1.2.0")
	fmt.Println(order, err)
	// Output: -1 <nil>
}

func ExampleLayers() {
	for _, layer := range render.Layers(hold()) {
		fmt.Println(layer.Name, layer.Kind, layer.Namespace, layer.Selector)
	}
	// Output:
	// operator Deployment jr2-system control-plane=controller-manager
	// orchestrator Deployment my-instance app=jr2-orchestrator
	// repo cache DaemonSet my-instance app=jr2-repo-cache
}

func ExampleInstance() {
	objects, err := render.Instance(hold())
	fmt.Println(len(objects), err)
	fmt.Println(objects[len(objects)-1].GetObjectKind().GroupVersionKind())
	// Output:
	// 13 <nil>
	// apps/v1, Kind=Deployment
}

func ExampleOperator() {
	objects, err := render.Operator(hold())
	fmt.Println(objects[0].GetObjectKind().GroupVersionKind().Kind, objects[1].GetObjectKind().GroupVersionKind().Kind, err)
	// Output: Namespace CustomResourceDefinition <nil>
}

func ExampleRepoCache() {
	for _, object := range render.RepoCache(hold()) {
		fmt.Println(object.GetObjectKind().GroupVersionKind().Kind)
	}
	// Output:
	// ServiceAccount
	// Role
	// RoleBinding
	// DaemonSet
}

func ExampleInstanceHarness() {
	in := hold()
	in.Instance.Workflows[0].Agents = []config.Agent{{Name: "triage", Access: "none"}}
	objects, err := render.InstanceHarness(in)
	fmt.Println(len(objects), err)
	// Output: 3 <nil>
}

func ExamplePriorityClasses() {
	in := hold()
	control := "platform-critical"
	in.Instance.PriorityClasses.Control = &control
	for _, class := range render.PriorityClasses(in) {
		fmt.Println(class.Name, class.Value, *class.PreemptionPolicy)
	}
	// Output: jr2-sandbox 1000 Never
}

func ExampleNamespace() {
	fmt.Println(render.Namespace(hold()).Labels)
	// Output: map[jr2.dev/instance:my-instance]
}

func ExampleBindings() {
	in := hold()
	in.Instance.Secrets = []config.HeldSecret{{Name: "TRACKER", ValueFrom: &config.SecretKeyRef{Name: "tracker", Key: "token"}, Hosts: []string{"t.example.com"}}}
	for _, binding := range render.Bindings(in) {
		fmt.Println(binding.Name, binding.Hosts, binding.Source)
	}
	// Output: TRACKER [t.example.com:443] key "token" of Secret tracker
}

func ExampleBoundHosts() {
	in := hold()
	in.Instance.Secrets = []config.HeldSecret{
		{Name: "OPENAI_API_KEY", Value: config.NewSecret("t")},
		{Name: "TRACKER", Value: config.NewSecret("t"), Hosts: []string{"https://T.example.com:8443/api", "api.openai.com"}},
	}
	for _, host := range render.BoundHosts(in) {
		fmt.Println(host.Name, host.Port, host.Stem())
	}
	// Output:
	// api.openai.com 443 api.openai.com-443
	// t.example.com 8443 t.example.com-8443
}
