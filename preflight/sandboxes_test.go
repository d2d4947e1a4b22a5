package preflight_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/preflight"
)

// boxPod is the pod of a Sandbox of 3Gi and one CPU, with a repository of its node.
func boxPod(namespace string) *corev1.Pod {
	pod := placement.SandboxPod(namespace, placement.Share{CPU: 1000, Memory: 3 << 30, Disk: 10 << 30}, placement.Rules{})
	pod.GenerateName = "box-"
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = pinned
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "repo", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/jr2"}}}}
	return pod
}

// TestSandboxesOfANamespace: what the API server would say of a Sandbox's pod is told in its words, and no finding is told where it lets the pod in.
func TestSandboxesOfANamespace(t *testing.T) {
	t.Parallel()
	client := clientFor(t, sharedCluster(t).Config())
	for name, test := range map[string]struct {
		labels map[string]string
		limits *corev1.LimitRangeItem
		quota  corev1.ResourceList
		holds  bool // something of 2Gi runs there
		want   string
	}{
		"open":      {},
		"baseline":  {labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, want: `warn sandbox-refused boxes: boxes would get no pod: violates PodSecurity "baseline:latest": hostPath volumes (volume "repo") — kubectl label --overwrite namespace boxes-baseline pod-security.kubernetes.io/enforce=privileged`},
		"max":       {limits: &corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: amountsOf("memory=1Gi")}, want: "warn sandbox-refused boxes: boxes would get no pod: maximum memory usage per Container is 1Gi"},
		"large-max": {limits: &corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: amountsOf("memory=8Gi")}},
		"min":       {limits: &corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: amountsOf("cpu=2")}, want: "warn sandbox-refused boxes: boxes would get no pod: minimum cpu usage per Pod is 2"},
		"ratio":     {limits: &corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: amountsOf("memory=1")}},
		"odd-ratio": {limits: &corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: amountsOf("ephemeral-storage=2")}, want: "warn sandbox-refused boxes: boxes would get no pod: [ephemeral-storage max limit to request ratio per Container is 2"},
		"defaults":  {limits: &corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: amountsOf("example.com/gpu=1"), DefaultRequest: amountsOf("example.com/gpu=1")}, want: "warn no-room-ever boxes: boxes find no room, and would wait until somebody makes it: the nodes (a, b: is too small: example.com/gpu 0 allocatable of 2 wanted) — lower the Size, or add a larger node"},
		"never":     {quota: amountsOf("limits.memory=512Mi"), want: "warn sandbox-refused boxes: boxes would get no pod: exceeded quota: boxes-never, requested: limits.memory=3Gi, used: limits.memory=0, limited: limits.memory=512Mi — raise the quota, or lower the Size: kubectl -n boxes-never patch resourcequota boxes-never "},
		"full":      {quota: amountsOf("limits.memory=4Gi"), holds: true, want: "warn no-room boxes: boxes find no room now, and would wait: quota boxes-full: limits.memory 2Gi used of 4Gi, 3Gi each — raise the quota boxes-full, or lower the Size: kubectl -n boxes-full patch resourcequota boxes-full --type merge -p '{" + `"spec":{"hard":{"limits.memory":"5Gi"}}}'`},
		"half-full": {quota: amountsOf("limits.memory=5Gi"), holds: true},
		"secrets":   {quota: amountsOf("count/secrets=0"), want: "warn no-room-ever boxes: boxes find no room, and would wait until somebody makes it: quota boxes-secrets: count/secrets 0 used of 0, 1 each — raise the quota boxes-secrets: kubectl -n boxes-secrets patch "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := "boxes-" + name
			makeNamespace(t, client, namespace, test.labels)
			bound(t, client, namespace, test.limits, test.quota, test.holds)
			look := func() []preflight.Finding {
				quotas, err := client.CoreV1().ResourceQuotas(namespace).List(t.Context(), metav1.ListOptions{})
				must(t, err)
				ranges, err := client.CoreV1().LimitRanges(namespace).List(t.Context(), metav1.ListOptions{})
				must(t, err)
				facts := preflight.SandboxFacts{DryRun: client.CoreV1().Pods(namespace), Facts: placement.Facts{Nodes: []corev1.Node{node("a"), node("b")}, Pods: []corev1.Pod{},
					Quotas: quotas.Items, LimitRanges: ranges.Items}}
				return preflight.Sandboxes(t.Context(), []preflight.SandboxShape{{Of: "boxes", Pods: []*corev1.Pod{boxPod(namespace)}}}, facts)
			}
			found := look()
			saysOne(t, found, test.want)
			if quota := test.quota != nil || name == "max" || name == "min"; quota && len(found) > 0 {
				patched(t, client, namespace, found[0].Fix)
				eventually(t, "the fix lets boxes in", func() bool { return len(look()) == 0 })
			}
		})
	}
}

// aPatch is the form of the fixes that change what bounds pods.
var aPatch = regexp.MustCompile(`^kubectl -n (\S+) patch (resourcequota|limitrange) (\S+) --type (merge|json) -p '([^']*)'$`)

// patched types a fix.
func patched(t *testing.T, client kubernetes.Interface, namespace, fix string) {
	t.Helper()
	words := aPatch.FindStringSubmatch(fix)
	if words == nil || words[1] != namespace {
		t.Fatalf("no patch of %s: %s", namespace, fix)
	}
	kind, body, err := types.MergePatchType, []byte(words[5]), error(nil)
	if words[4] == "json" {
		kind = types.JSONPatchType
	}
	if words[2] == "limitrange" {
		_, err = client.CoreV1().LimitRanges(namespace).Patch(t.Context(), words[3], kind, body, metav1.PatchOptions{})
	} else {
		_, err = client.CoreV1().ResourceQuotas(namespace).Patch(t.Context(), words[3], kind, body, metav1.PatchOptions{})
	}
	must(t, err)
}

// bound makes what bounds the pods of a namespace, and returns when it counts.
func bound(t *testing.T, client kubernetes.Interface, namespace string, limits *corev1.LimitRangeItem, quota corev1.ResourceList, holds bool) {
	t.Helper()
	if limits != nil {
		_, err := client.CoreV1().LimitRanges(namespace).Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{*limits}}}, metav1.CreateOptions{})
		must(t, err) // admission looks itself where it knows of none
	}
	if quota == nil {
		return
	}
	makeQuota(t, client, namespace, quota)
	if !holds {
		return
	}
	pod := running(namespace, "holds", "")
	pod.Spec.Containers[0].Resources.Limits = amountsOf("memory=2Gi")
	_, err := client.CoreV1().Pods(namespace).Create(t.Context(), &pod, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the quota counts it", func() bool {
		quota, err := client.CoreV1().ResourceQuotas(namespace).Get(t.Context(), namespace, metav1.GetOptions{})
		must(t, err)
		used := quota.Status.Used["limits.memory"]
		return !used.IsZero()
	})
}

// saysOne wants one finding, of the form "severity code object: beginning of its message", or none.
func saysOne(t *testing.T, found []preflight.Finding, want string) {
	t.Helper()
	var got []string
	for _, f := range found {
		got = append(got, string(f.Severity)+" "+f.Code+" "+f.Object+": "+f.Message)
		if f.Severity != preflight.Note && (f.Fix == "" || !strings.HasSuffix(f.Message, f.Fix)) {
			t.Errorf("without its fix: %+v", f)
		}
	}
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), want)
	}
}

// TestSandboxesOnNodes: one finding for each Size, however many nodes there are, with the reasons grouped.
func TestSandboxesOnNodes(t *testing.T) {
	t.Parallel()
	var many []corev1.Node
	for _, n := range nodes(40) {
		many = append(many, with(n, "memory=2Gi"))
	}
	for name, test := range map[string]struct {
		facts placement.Facts
		shape preflight.SandboxShape
		want  string
	}{
		"room":          {facts: placement.Facts{Nodes: nodes(2)}},
		"nobody looked": {},
		"full": {facts: placement.Facts{Nodes: []corev1.Node{node("a"), node("b")}, Pods: []corev1.Pod{running("x", "p", "a", "memory=255Gi"), running("x", "q", "b", "cpu=64"), running("x", "waits", "")}},
			want: "warn no-room boxes: boxes find no room now, and would wait: the nodes (a: has no room: memory 1Gi free of 3Gi wanted; b: has no room: cpu 0 free of 1 wanted) (1 pod without a node compete for it) — add a node, or wait until others go"},
		"too small":        {facts: placement.Facts{Nodes: many}, want: "warn no-room-ever boxes: boxes find no room, and would wait until somebody makes it: the nodes (n1, n2, n3, n4, n5 and 35 more: is too small: memory 2Gi allocatable of 3Gi wanted) — lower the Size"},
		"told":             {facts: placement.Facts{Nodes: many}, shape: preflight.SandboxShape{NodesTold: true}},
		"no disk":          {facts: placement.Facts{Nodes: []corev1.Node{with(node("a"), "ephemeral-storage=5Gi")}}, want: "warn no-room-ever boxes: boxes find no room, and would wait until somebody makes it: the nodes (a: is too small: ephemeral-storage 5Gi allocatable of 10Gi wanted) — add a node with more ephemeral storage"},
		"a startup taint":  {facts: placement.Facts{Nodes: []corev1.Node{node("a", "node.cilium.io/agent-not-ready:NoSchedule")}}, want: "note no-room boxes: boxes find no room yet, which is expected to clear by itself: the nodes (a: "},
		"a lasting taint":  {facts: placement.Facts{Nodes: []corev1.Node{node("a", "pool=other:NoSchedule")}}, want: "warn no-room-ever boxes: boxes find no room, and would wait until somebody makes it: the nodes (a: "},
		"no node":          {facts: placement.Facts{Nodes: []corev1.Node{}}, want: "warn no-room-ever boxes: boxes find no room, and would wait until somebody makes it: the nodes (the cluster has no node) — add a node"},
		"a limit range":    {facts: placement.Facts{LimitRanges: []corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: amountsOf("memory=1Gi")}}}}}}, want: "warn no-room-ever boxes: boxes find no room, and would wait until somebody makes it: limit range l: "},
		"of another place": {facts: placement.Facts{Nodes: nodes(1), LimitRanges: []corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "y", Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: amountsOf("memory=1Gi")}}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shape := test.shape
			shape.Of, shape.Pods = "boxes", []*corev1.Pod{boxPod("x")}
			saysOne(t, preflight.Sandboxes(t.Context(), []preflight.SandboxShape{shape}, preflight.SandboxFacts{Facts: test.facts}), test.want)
		})
	}
	// What goes when a Sandbox comes holds nothing.
	held := placement.Facts{Nodes: nodes(1), Pods: []corev1.Pod{running("x", "placeholder", "n1", "memory=255Gi")}}
	goes := func(pod *corev1.Pod) bool { return pod.Name == "placeholder" }
	saysOne(t, preflight.Sandboxes(t.Context(), []preflight.SandboxShape{{Of: "boxes", Pods: []*corev1.Pod{boxPod("x")}}}, preflight.SandboxFacts{Facts: held, GivesWay: goes}), "")
}

// TestDefaultAccount: it may be on its way in a young namespace, and is a fault in an old one; a Secret that it names must be there.
func TestDefaultAccount(t *testing.T) {
	t.Parallel()
	cluster := sharedCluster(t)
	client := clientFor(t, cluster.Config())
	const home = "accounts"
	makeNamespace(t, client, home, nil)
	now := time.Now()
	look := func(client kubernetes.Interface, in string, age time.Duration) ([]preflight.Finding, error) {
		return preflight.DefaultAccount(t.Context(), client.CoreV1().ServiceAccounts(in), client.CoreV1().Secrets(in), in, now.Add(-age), now)
	}
	found, err := look(client, home, time.Hour)
	must(t, err)
	saysOne(t, found, "")
	patch := []byte(`{"imagePullSecrets":[{"name":"gone"},{"name":"there"}]}`)
	_, err = client.CoreV1().ServiceAccounts(home).Patch(t.Context(), "default", "application/merge-patch+json", patch, metav1.PatchOptions{})
	must(t, err)
	_, err = client.CoreV1().Secrets(home).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "there"}}, metav1.CreateOptions{})
	must(t, err)
	found, err = look(client, home, time.Hour)
	must(t, err)
	saysOne(t, found, "warn pull-secret Secret accounts/gone: ServiceAccount accounts/default names Secret accounts/gone for pulling images, which does not exist: ")

	found, err = look(client, "accounts-nowhere", time.Hour) // no namespace has none
	must(t, err)
	saysOne(t, found, "warn service-account-missing ServiceAccount accounts-nowhere/default: ServiceAccount accounts-nowhere/default does not exist, although ")
	found, err = look(client, "accounts-nowhere", time.Second)
	must(t, err)
	saysOne(t, found, "")

	config, err := cluster.ConfigFor("ana")
	must(t, err)
	if found, err = look(clientFor(t, config), home, time.Hour); !apierrors.IsForbidden(err) || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
}
