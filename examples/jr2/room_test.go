package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
)

// TestRoom: what limits first is told with its numbers, a quota or the nodes; one who may not read the nodes is told so.
func TestRoom(t *testing.T) {
	disk := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("25Gi")}
	team := devcluster.User{Name: "team", Rules: map[string][]rbacv1.PolicyRule{"team": {{APIGroups: []string{""}, Resources: []string{"resourcequotas", "limitranges"}, Verbs: []string{"list"}}}}}
	cluster := devcluster.ForTest(t, devcluster.Options{Context: "shared", Nodes: []devcluster.Node{{Name: "a", Allocatable: disk}, {Name: "b", Allocatable: disk, Unschedulable: true}}, Users: []devcluster.User{team}})
	client, err := kubernetes.NewForConfig(cluster.Config())
	must(t, err)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team-quota"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"limits.memory": resource.MustParse("5Gi")}}}
	_, err = client.CoreV1().ResourceQuotas("team").Create(t.Context(), quota, metav1.CreateOptions{})
	must(t, err)
	must(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		q, err := client.CoreV1().ResourceQuotas("team").Get(ctx, "team-quota", metav1.GetOptions{})
		return err == nil && len(q.Status.Used) == 1, nil
	}))
	room := func(kubeconfig string, args ...string) *session {
		run := newSession()
		run.run(t.Context(), append([]string{"room", "--kubeconfig", kubeconfig}, args...)...) //nolint:errcheck // told on stderr
		return run
	}
	theirs, err := cluster.KubeconfigFor("team")
	must(t, err)

	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"the nodes": {nil, "2 more of memory 2Gi, cpu 1, ephemeral-storage 10Gi; limited by the nodes (a: has no room: ephemeral-storage 5Gi free of 10Gi wanted; b: is cordoned)\n"},
		"a quota":   {[]string{"-n", "team", "--memory", "1Gi", "--disk", "0"}, "5 more of memory 1Gi, cpu 1; limited by quota team-quota: limits.memory 0 used of 5Gi, 1Gi each\n"},
		"never":     {[]string{"--cpu", "64", "--disk", "0"}, "0 more of memory 2Gi, cpu 64; limited by the nodes (a: is too small: cpu 8 allocatable of 64 wanted; b: is cordoned)\n"},
		"a label":   {[]string{"--node-selector", "pool=x"}, "0 more of memory 2Gi, cpu 1, ephemeral-storage 10Gi; limited by the nodes (a: lacks the label pool that the pod's nodeSelector requires; b: is cordoned)\n"},
	} {
		if run := room(cluster.Kubeconfig(), test.args...); run.out.String() != test.want || run.err.String() != "" {
			t.Errorf("%s: got %s%s", name, run.out, run.err)
		}
	}
	few := room(theirs, "-n", "team", "--memory", "1Gi")
	if want := "5 more of memory 1Gi, cpu 1, ephemeral-storage 10Gi; limited by quota team-quota: limits.memory 0 used of 5Gi, 1Gi each; not read: nodes, pods\n"; few.out.String() != want {
		t.Errorf("got %s%s", few.out, few.err)
	}
	var last struct{ Result placement.Headroom }
	told := room(cluster.Kubeconfig(), "-n", "team", "-o", "json")
	must(t, json.Unmarshal([]byte(told.out.lastLine()), &last))
	if types := told.types(t); types[0] != "version" || types[1] != "result" || last.Result.More != 2 || len(last.Result.LimitedBy) != 2 || len(last.Result.Nodes) != 2 || len(last.Result.Quotas) != 1 {
		t.Errorf("got %s", told.out)
	}
	for name, args := range map[string][]string{
		"error: --memory: \"much\" is no quantity": {"--memory", "much"},
		"error: shared has no namespace nobody":    {"-n", "nobody"},
		"error: --output \"yaml\"":                 {"-o", "yaml"},
	} {
		if run := room(cluster.Kubeconfig(), args...); !strings.HasPrefix(run.err.String(), name) || run.out.String() != "" {
			t.Errorf("got %s%s", run.out, run.err)
		}
	}
}
