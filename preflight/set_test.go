package preflight_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"jr2.dev/jr2/preflight"
)

// manifests reads the documents of a YAML text.
func manifests(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		all = append(all, o)
	}
}

// workloadYAML is a workload with this pod spec, which is YAML in flow style.
func workloadYAML(kind, name, spec, podSpec string) string {
	group := map[string]string{"Job": "batch/v1"}[kind]
	if group == "" {
		group = "apps/v1"
	}
	if spec != "" {
		spec += ", "
	}
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {namespace: jarvis, name: %s}\n"+
		"spec: {%sselector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: %s}}\n", group, kind, name, spec, name, name, podSpec)
}

// pinned is an image that no check says anything about.
const pinned = "registry.example.com/app@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// node makes a Linux node with room, with these taints, written as kubectl takes them, and labels "key=value".
func node(name string, marks ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"}
	n.Status.Allocatable = amountsOf("cpu=64", "memory=256Gi", "ephemeral-storage=1Ti", "pods=110")
	for _, mark := range marks {
		key, effect, isTaint := strings.Cut(mark, ":")
		key, value, _ := strings.Cut(key, "=")
		if !isTaint {
			n.Labels[key] = value
			continue
		}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return n
}

// with sets some of the allocatable of a node: "cpu=750m", "pods=8".
func with(n corev1.Node, amounts ...string) corev1.Node {
	maps.Copy(n.Status.Allocatable, amountsOf(amounts...))
	return n
}

func amountsOf(amounts ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, amount := range amounts {
		name, value, _ := strings.Cut(amount, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

// running is a pod on a node that asks for these amounts.
func running(namespace, name, on string, requests ...string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{
			Name: "app", Image: pinned, Resources: corev1.ResourceRequirements{Requests: amountsOf(requests...)},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// says compares findings with lines of the form "severity code object: words", where the words are a part of the message.
func says(t *testing.T, findings []preflight.Finding, want ...string) {
	t.Helper()
	if len(findings) != len(want) {
		t.Errorf("got %d findings, want %d:\n%s", len(findings), len(want), shown(findings))
		return
	}
	for i, finding := range findings {
		head, words, _ := strings.Cut(want[i], ": ")
		if got := fmt.Sprintf("%s %s %s", finding.Severity, finding.Code, finding.Object); got != head || !strings.Contains(finding.Message, words) {
			t.Errorf("got  %s: %s\nwant %s", got, finding.Message, want[i])
		}
		if strings.HasPrefix(finding.Message, "refusing: ") != (finding.Severity == preflight.Refuse) || strings.Contains(finding.Message, "\n") {
			t.Errorf("a message that is no one sentence of its severity: %s %q", finding.Severity, finding.Message)
		}
		if finding.Severity != preflight.Note && finding.Fix == "" {
			t.Errorf("no fix: %+v", finding)
		}
	}
}

func shown(findings []preflight.Finding) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("  %s %s %s: %s", f.Severity, f.Code, f.Object, f.Message))
	}
	return strings.Join(lines, "\n")
}

// without drops the Notes that a check could not look.
func without(findings []preflight.Finding, codes ...string) []preflight.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f preflight.Finding) bool { return slices.Contains(codes, f.Code) })
}

// admits lets every pod in.
type admits struct{}

func (admits) Create(_ context.Context, pod *corev1.Pod, _ metav1.CreateOptions) (*corev1.Pod, error) {
	return pod, nil
}

// TestSetWithoutFacts: a check that cannot look says so, and a set without pods has nothing to look at.
func TestSetWithoutFacts(t *testing.T) {
	quiet := manifests(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: jarvis, name: c}, data: {a: b}}")
	says(t, preflight.Set(t.Context(), quiet, preflight.SetFacts{}))
	says(t, preflight.Set(t.Context(), nil, preflight.SetFacts{}))

	apart := `{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: api}}}]}},
		runtimeClassName: kata, containers: [{name: api, image: "registry.example.com/api:v1"}]}`
	findings := preflight.Set(t.Context(), manifests(t, workloadYAML("Deployment", "api", "replicas: 2", apart)), preflight.SetFacts{})
	says(t, findings,
		"warn image-unpinned Deployment jarvis/api: find its digest",
		"note not-looked-at registries: digests",
		"note not-looked-at registries: whether the images of this set can be pulled",
		"note not-looked-at registries: architectures",
		"note not-looked-at RuntimeClasses: the overhead of kata is left out",
		"note not-looked-at nodes: whether one takes the pods",
		"note not-looked-at API server: dry run",
		"note not-looked-at webhooks: were not read",
		"note not-looked-at nodes: different ones")

	odd := manifests(t, workloadYAML("Deployment", "odd", "", "{containers: nonsense}"))
	says(t, preflight.Set(t.Context(), odd, preflight.SetFacts{}), "note not-looked-at Deployment jarvis/odd: cannot be read")
}

// TestSetIsStable: equal facts give equal findings, which a program can read as JSON.
func TestSetIsStable(t *testing.T) {
	objs := manifests(t, jarvis)
	facts := preflight.SetFacts{Nodes: []corev1.Node{node("a"), node("b")}, Pods: []corev1.Pod{}, Namespaces: map[string]*corev1.Namespace{}, Images: registry}
	first, err := json.Marshal(preflight.Set(t.Context(), objs, facts))
	must(t, err)
	for range 20 {
		next, err := json.Marshal(preflight.Set(t.Context(), manifests(t, jarvis), facts))
		must(t, err)
		if string(next) != string(first) {
			t.Fatalf("got\n%s\nthen\n%s", first, next)
		}
	}
	again := manifests(t, jarvis)
	for i := range objs {
		a, errA := json.Marshal(objs[i])
		b, errB := json.Marshal(again[i])
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("the checks changed %s", objs[i].GetName())
		}
	}
}
