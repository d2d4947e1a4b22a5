package preflight_test

import (
	"context"
	"fmt"

	"jr2.dev/jr2/preflight"
)

func ExampleWebhooks() {
	cluster := webhookCluster{validating: []string{hook(podsOnly)}} // with client-go, as WebhookReader says
	for _, finding := range preflight.Webhooks(context.Background(), exampleSet("registry.example.com/api:v1"), preflight.SetFacts{Webhooks: cluster.reader()}) {
		fmt.Println(finding.Severity, finding.Message)
	}
	// Output: warn ValidatingWebhookConfiguration policy: the webhook w.example.io fails closed and calls the Service guard/judge, which does not exist, so the server will refuse the pods of StatefulSet demo/api — bring up the Service guard/judge, or delete ValidatingWebhookConfiguration policy if it is a leftover
}

func ExampleNodeVersions() {
	set := exampleSet("registry.example.com/api:v1")
	template := set[0].Object["spec"].(map[string]any)["template"].(map[string]any)
	template["spec"].(map[string]any)["volumes"] = []any{map[string]any{"name": "data", "image": map[string]any{"reference": "registry.example.com/data:v1"}}}
	nodes := exampleNodes("")
	nodes[0].Status.NodeInfo.KubeletVersion, nodes[0].Status.NodeInfo.ContainerRuntimeVersion = "v1.36.1", "containerd://2.1.0"
	nodes[1].Status.NodeInfo.KubeletVersion, nodes[1].Status.NodeInfo.ContainerRuntimeVersion = "v1.36.1", "containerd://1.7.27"
	for _, finding := range preflight.NodeVersions(set, preflight.SetFacts{Nodes: nodes}) {
		fmt.Println(finding.Severity, finding.Message)
	}
	// Output: warn StatefulSet demo/api uses image volumes, which need kubelet 1.35 or newer, and containerd 2.1 or cri-o 1.31: b has containerd 1.7.27, and there the pod does not start — upgrade these nodes, or keep the pods off them by a nodeSelector
}
