package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/preflight"
)

func counted(hard, used map[corev1.ResourceName]string, scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuota {
	amounts := func(from map[corev1.ResourceName]string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for name, text := range from {
			list[name] = resource.MustParse(text)
		}
		return list
	}
	return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes}, Status: corev1.ResourceQuotaStatus{Hard: amounts(hard), Used: amounts(used)}}
}

// ExampleQuotaSums: two Secrets, of which a quota has room for one.
func ExampleQuotaSums() {
	secret := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "team-a"}}}
	}
	findings := preflight.QuotaSums(preflight.Arrivals{
		Namespace: "team-a", Objects: []*unstructured.Unstructured{secret("a"), secret("b")},
		Quotas: []corev1.ResourceQuota{counted(map[corev1.ResourceName]string{"secrets": "4"}, map[corev1.ResourceName]string{"secrets": "3"})},
	}, preflight.SetFacts{})
	for _, f := range findings {
		fmt.Println(f.Message)
	}
	// Output: quota q of namespace team-a has no room for all that is made there: secrets: 2 more, 3 used of 4 — what comes last would wait for room; raise the quota: kubectl -n team-a patch resourcequota q --type merge -p '{"spec":{"hard":{"secrets":"5"}}}'
}

// TestQuotaSums: pods count as often as they are made and with what LimitRanges give them, a scope leaves other pods and all objects out, and what
// nobody counted says nothing.
func TestQuotaSums(t *testing.T) {
	t.Parallel()
	object := func(kind, spec string) *unstructured.Unstructured {
		return manifests(t, "apiVersion: apps/v1\nkind: "+kind+"\nmetadata: {name: x, namespace: team-a}\nspec: {"+spec+"selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: r.example/c:1}]}}}")[0]
	}
	limits := corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{"memory": resource.MustParse("1Gi")}, DefaultRequest: corev1.ResourceList{"memory": resource.MustParse("256Mi")}}}}}
	amounts := func(pairs ...string) map[corev1.ResourceName]string {
		all := map[corev1.ResourceName]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[corev1.ResourceName(pairs[i])] = pairs[i+1]
		}
		return all
	}
	both := []corev1.Node{with(node("a"), "cpu=4", "memory=8Gi", "pods=9"), with(node("b"), "cpu=4", "memory=8Gi", "pods=9")}
	for _, tt := range []struct {
		name  string
		obj   *unstructured.Unstructured
		quota corev1.ResourceQuota
		want  string
	}{
		{"replicas", object("Deployment", "replicas: 3, "), counted(amounts("pods", "3"), amounts("pods", "1")), "pods: 3 more, 1 used of 3"},
		{"as many as there can be", object("Deployment", "replicas: 2147483647, "), counted(amounts("pods", "3"), amounts("pods", "1")), "pods: 2147483647 more, 1 used of 3"},
		{"room for all", object("Deployment", "replicas: 3, "), counted(amounts("pods", "4"), amounts("pods", "1")), ""},
		{"a pod for each node", object("DaemonSet", ""), counted(amounts("count/pods", "1"), amounts("count/pods", "0")), "count/pods: 2 more"},
		{"by defaults", object("StatefulSet", "replicas: 2, "), counted(amounts("limits.memory", "1536Mi"), amounts("limits.memory", "0")), "limits.memory: 2Gi more"},
		{"a ReplicaSet", object("Deployment", ""), counted(amounts("count/replicasets.apps", "1"), amounts("count/replicasets.apps", "1")), "count/replicasets.apps: 1 more"},
		{"a scope of other pods", object("Deployment", "replicas: 3, "), counted(amounts("pods", "1"), amounts("pods", "0"), corev1.ResourceQuotaScopeTerminating), ""},
		{"a scope and objects", object("Deployment", ""), counted(amounts("count/deployments.apps", "0"), amounts("count/deployments.apps", "0"), corev1.ResourceQuotaScopeNotTerminating), ""},
		{"nobody counted", object("Deployment", "replicas: 3, "), counted(amounts("pods", "1"), nil), ""},
	} {
		findings := preflight.QuotaSums(preflight.Arrivals{Namespace: "team-a", Objects: []*unstructured.Unstructured{tt.obj}, Quotas: []corev1.ResourceQuota{tt.quota}, LimitRanges: []corev1.LimitRange{limits}},
			preflight.SetFacts{Nodes: both})
		if len(findings) > 0 != (tt.want != "") || len(findings) > 0 && !strings.Contains(findings[0].Message, tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, findings, tt.want)
		}
	}
}
