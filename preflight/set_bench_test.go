package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/preflight"
)

// BenchmarkSet checks a set of 20 workloads against 2,000 nodes with 5,000 pods.
func BenchmarkSet(b *testing.B) {
	facts := preflight.SetFacts{Namespaces: map[string]*corev1.Namespace{"jarvis": {}}, Images: registry}
	for i := range 2000 {
		n := with(node(fmt.Sprintf("n-%d", i)), "cpu=8", "memory=32Gi")
		for j := range 50 {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/other/%d:1", j)}})
		}
		facts.Nodes = append(facts.Nodes, n)
	}
	for i := range 5000 {
		facts.Pods = append(facts.Pods, running("other", fmt.Sprintf("p-%d", i), fmt.Sprintf("n-%d", i%2000), "cpu=1", "memory=1Gi"))
	}
	var text strings.Builder
	for i := range 20 {
		text.WriteString(workloadYAML("Deployment", fmt.Sprintf("w-%d", i), "replicas: 3", fmt.Sprintf(`{containers: [{name: a, image: "registry.example.com/multi:%d", resources: {requests: {cpu: "2"}}}]}`, i)))
	}
	objs := manifests(b, text.String())
	for b.Loop() {
		preflight.Set(b.Context(), objs, facts)
	}
}
