package preflight_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/preflight"
)

// exampleSet is a Deployment of three pods, each on a node of its own.
func exampleSet(image string) []*unstructured.Unstructured {
	labels := map[string]any{"app": "api"}
	apart := map[string]any{"topologyKey": corev1.LabelHostname, "labelSelector": map[string]any{"matchLabels": labels}}
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"namespace": "demo", "name": "api"},
		"spec": map[string]any{"replicas": int64(3), "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"containers": []any{map[string]any{"name": "api", "image": image}},
				"affinity":   map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{apart}}},
			},
		}},
	}}}
}

func exampleNodes(taint string) []corev1.Node {
	nodes := []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	for i := range nodes {
		nodes[i].Status.NodeInfo.Architecture = "arm64"
		nodes[i].Status.Allocatable = amountsOf("cpu=4", "memory=8Gi", "pods=110")
		if taint != "" {
			nodes[i].Spec.Taints = []corev1.Taint{{Key: taint, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	return nodes
}

// published answers as a registry would, such as images.Registry's Look.
func published(context.Context, string, authn.Authenticator) (preflight.ImageFacts, error) {
	return preflight.ImageFacts{Digest: someDigest, Platforms: []string{"linux/amd64"}}, nil
}

func ExampleSet() {
	facts := preflight.SetFacts{Nodes: exampleNodes(""), Pods: []corev1.Pod{}, Images: published, DryRun: func(string) preflight.PodCreator { return admits{} }}
	findings := preflight.Set(context.Background(), exampleSet("registry.example.com/api:stable"), facts)
	for _, finding := range findings {
		fmt.Println(finding.Severity, finding.Code)
	}
	fmt.Println(preflight.Refused(findings))
	// Output:
	// warn image-unpinned
	// warn image-platform
	// note not-looked-at
	// warn anti-affinity
	// <nil>
}

func ExamplePlaceholders() {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "demo", "name": "keys"}, "stringData": map[string]any{"TOKEN": "REPLACE_ME"},
	}}
	fmt.Println(preflight.Placeholders([]*unstructured.Unstructured{secret})[0].Fix)
	// Output: write the real value of TOKEN, or leave the Secret out of the set
}

func ExampleDigests() {
	findings := preflight.Digests(context.Background(), exampleSet("registry.example.com/api:stable"), preflight.SetFacts{Images: published})
	fmt.Println(findings[0].Fix)
	// Output: registry.example.com/api@sha256:1111111111111111111111111111111111111111111111111111111111111111
}

func ExamplePulls() {
	registry := func(_ context.Context, _ string, as authn.Authenticator) (preflight.ImageFacts, error) {
		if as == authn.Anonymous {
			return preflight.ImageFacts{Denied: errors.New("authentication required")}, nil
		}
		return preflight.ImageFacts{Digest: someDigest, Platforms: []string{"linux/arm64"}}, nil
	}
	facts := preflight.SetFacts{Images: registry, Nodes: exampleNodes(""), Namespaces: map[string]*corev1.Namespace{}} // the namespace arrives with the set
	for _, finding := range preflight.Pulls(context.Background(), exampleSet("registry.example.com/api:v1"), facts) {
		fmt.Println(finding.Message)
	}
	// Output: StatefulSet demo/api: the registry does not show registry.example.com/api:v1 (container "api") to its pods (authentication required): they name no pull Secret, and neither does their service account (your own credentials can read it); unless the nodes have credentials of their own, which nobody sees from here, they cannot pull it — kubectl -n demo create secret docker-registry registry-pull --docker-server=registry.example.com --docker-username=... --docker-password=... && kubectl -n demo patch serviceaccount default -p '{"imagePullSecrets": [{"name": "registry-pull"}]}'
}

func ExampleArchitectures() {
	findings := preflight.Architectures(context.Background(), exampleSet("registry.example.com/api:v1"), preflight.SetFacts{Images: published, Nodes: exampleNodes("")})
	fmt.Println(findings[0].Message)
	// Output: StatefulSet demo/api: registry.example.com/api:v1 (container "api") is published for linux/amd64 and not for a, b (arm64), and there is no other node that takes the pod, so it can never be pulled — publish it for arm64
}

func ExampleSchedulability() {
	facts := preflight.SetFacts{Nodes: exampleNodes("node.kubernetes.io/network-unavailable"), Pods: []corev1.Pod{}}
	for _, finding := range preflight.Schedulability(exampleSet("registry.example.com/api:v1"), facts) {
		fmt.Println(finding.Severity, finding.Message)
	}
	// Output: note StatefulSet demo/api: no node takes its pods yet: a, b: has the taint node.kubernetes.io/network-unavailable:NoSchedule for now; it is expected to clear by itself — wait
}

func ExampleAdmission() {
	restricted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "demo", "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}},
	}}
	facts := preflight.SetFacts{Namespaces: map[string]*corev1.Namespace{}} // the namespace arrives with the set
	for _, finding := range preflight.Admission(context.Background(), append(exampleSet("registry.example.com/api:v1"), restricted), facts) {
		fmt.Println(finding.Severity, finding.Code, finding.Object)
	}
	// Output: refuse pod-security StatefulSet demo/api
}

func ExampleDrains() {
	for _, finding := range preflight.Drains(exampleSet("registry.example.com/api:v1"), preflight.SetFacts{Nodes: exampleNodes("")}) {
		fmt.Println(finding.Fix)
	}
	// Output: add 1 node, or set replicas: 2
}
