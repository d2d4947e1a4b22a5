package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
)

func quota(name, hard, used string, change ...func(*corev1.ResourceQuotaSpec)) corev1.ResourceQuota {
	q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	q.Spec.Hard, q.Status.Hard, q.Status.Used = list(hard), list(hard), list(used)
	for _, f := range change {
		f(&q.Spec)
	}
	return q
}

func scoped(scopes ...corev1.ResourceQuotaScope) func(*corev1.ResourceQuotaSpec) {
	return func(s *corev1.ResourceQuotaSpec) { s.Scopes = scopes }
}

func selected(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuotaSpec) {
	return func(s *corev1.ResourceQuotaSpec) {
		s.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values}}}
	}
}

func sandbox() *corev1.Pod {
	return placement.SandboxPod("ns", placement.Share{Memory: 2 << 30, CPU: 1000}, placement.Rules{PriorityClassName: "jr2-sandbox"})
}

func TestRoomByQuota(t *testing.T) {
	sandboxes := placement.RoomOptions{Objects: placement.SandboxObjects()}
	for name, test := range map[string]struct {
		quotas []corev1.ResourceQuota
		opts   placement.RoomOptions
		pod    *corev1.Pod
		more   int64 // -1: nothing limits
		by     string
		never  bool
	}{
		"none":                             {more: -1},
		"the document's":                   {quotas: []corev1.ResourceQuota{quota("team-quota", "limits.memory=8Gi", "limits.memory=2Gi")}, more: 3, by: "quota team-quota: limits.memory 2Gi used of 8Gi, 2Gi each"},
		"half of one":                      {quotas: []corev1.ResourceQuota{quota("q", "requests.memory=3Gi", "requests.memory=2Gi")}, more: 0, by: "quota q: requests.memory 2Gi used of 3Gi, 2Gi each"},
		"over its bound":                   {quotas: []corev1.ResourceQuota{quota("q", "limits.memory=2Gi", "limits.memory=4Gi")}, more: 0, by: "quota q: limits.memory 4Gi used of 2Gi, 2Gi each"},
		"never":                            {quotas: []corev1.ResourceQuota{quota("q", "limits.memory=512Mi", "limits.memory=0")}, more: 0, never: true, by: "quota q: limits.memory 0 used of 512Mi, 2Gi each"},
		"the least of several":             {quotas: []corev1.ResourceQuota{quota("q", "cpu=10 pods=2", "cpu=0 pods=0"), quota("r", "requests.cpu=3", "requests.cpu=0")}, more: 2, by: "quota q: pods 0 used of 2, 1 each"},
		"two alike":                        {quotas: []corev1.ResourceQuota{quota("q", "pods=2", "pods=0"), quota("r", "count/pods=5", "count/pods=3")}, more: 2, by: "quota q: pods 0 used of 2, 1 each; and by quota r: count/pods 3 used of 5, 1 each"},
		"pods: 0":                          {quotas: []corev1.ResourceQuota{quota("q", "pods=0", "pods=0")}, more: 0, never: true, by: "quota q: pods 0 used of 0, 1 each"},
		"another namespace's":              {quotas: []corev1.ResourceQuota{func() corev1.ResourceQuota { q := quota("q", "pods=0", "pods=0"); q.Namespace = "other"; return q }()}, more: -1},
		"what no pod takes":                {quotas: []corev1.ResourceQuota{quota("q", "requests.storage=0 configmaps=0 requests.nvidia.com/gpu=0", "requests.storage=0 configmaps=0 requests.nvidia.com/gpu=0")}, more: -1},
		"F30: a count of the kind":         {quotas: []corev1.ResourceQuota{quota("q", "count/sandboxes.core.jr2.dev=1", "count/sandboxes.core.jr2.dev=1")}, opts: sandboxes, more: 0, by: "quota q: count/sandboxes.core.jr2.dev 1 used of 1, 1 each"},
		"F30: its Services":                {quotas: []corev1.ResourceQuota{quota("q", "services=5", "services=3")}, opts: sandboxes, more: 2, by: "quota q: services 3 used of 5, 1 each"},
		"F30: a pod alone has no kind":     {quotas: []corev1.ResourceQuota{quota("q", "count/sandboxes.core.jr2.dev=1", "count/sandboxes.core.jr2.dev=1")}, more: -1},
		"NotTerminating":                   {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", scoped(corev1.ResourceQuotaScopeNotTerminating))}, more: 1, by: "quota q: pods 0 used of 1, 1 each"},
		"Terminating":                      {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", scoped(corev1.ResourceQuotaScopeTerminating))}, more: -1},
		"Terminating, with a deadline":     {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", scoped(corev1.ResourceQuotaScopeTerminating))}, pod: func() *corev1.Pod { p, n := asking(""), int64(60); p.Spec.ActiveDeadlineSeconds = &n; return p }(), more: 1, by: "quota q: pods 0 used of 1, 1 each"},
		"BestEffort":                       {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", scoped(corev1.ResourceQuotaScopeBestEffort))}, more: -1},
		"BestEffort that asks for nothing": {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", scoped(corev1.ResourceQuotaScopeBestEffort))}, pod: asking(""), more: 1, by: "quota q: pods 0 used of 1, 1 each"},
		"NotBestEffort":                    {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", scoped(corev1.ResourceQuotaScopeNotBestEffort))}, more: 1, by: "quota q: pods 0 used of 1, 1 each"},
		"two scopes, both":                 {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", scoped(corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating))}, more: -1},
		"a scope counts no kinds":          {quotas: []corev1.ResourceQuota{quota("q", "count/sandboxes.core.jr2.dev=0", "count/sandboxes.core.jr2.dev=0", scoped(corev1.ResourceQuotaScopeNotBestEffort))}, opts: sandboxes, more: -1},
		"its priority class":               {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", selected(corev1.ScopeSelectorOpIn, "jr2-sandbox"))}, more: 1, by: "quota q: pods 0 used of 1, 1 each"},
		"another priority class":           {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", selected(corev1.ScopeSelectorOpIn, "high"))}, more: -1},
		"not that priority class":          {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", selected(corev1.ScopeSelectorOpNotIn, "high"))}, more: 1, by: "quota q: pods 0 used of 1, 1 each"},
		"no priority class":                {quotas: []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", selected(corev1.ScopeSelectorOpDoesNotExist))}, more: -1},
		"a volume's scope":                 {quotas: []corev1.ResourceQuota{quota("q", "pods=0", "pods=0", scoped(corev1.ResourceQuotaScopeVolumeAttributesClass))}, more: -1},
		"across namespaces":                {quotas: []corev1.ResourceQuota{quota("q", "pods=0", "pods=0", scoped(corev1.ResourceQuotaScopeCrossNamespacePodAffinity))}, more: -1},
		"nobody has counted":               {quotas: []corev1.ResourceQuota{quota("q", "pods=5", "")}, more: 0, by: "quota q: nobody has counted yet what is used of pods"},
		"F16: unstated":                    {quotas: []corev1.ResourceQuota{quota("q", "requests.cpu=5", "requests.cpu=0")}, pod: asking("memory=1Gi"), more: 0, never: true, by: "quota q: wants every container to state requests.cpu"},
		"the pod states it for all": {quotas: []corev1.ResourceQuota{quota("q", "limits.cpu=5", "limits.cpu=0")}, pod: func() *corev1.Pod {
			p := sandbox()
			p.Spec.Containers = []corev1.Container{container("app", "")}
			return p
		}(), more: 5, by: "quota q: limits.cpu 0 used of 5, 1 each"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := test.pod
			if pod == nil {
				pod = sandbox()
			}
			room := placement.Room(pod, &placement.Facts{Quotas: test.quotas}, test.opts)
			if test.more < 0 {
				if !room.AtLeast || len(room.LimitedBy) > 0 {
					t.Errorf("got %s", room)
				}
				return
			}
			var by []string
			for _, limit := range room.LimitedBy {
				by = append(by, limit.Text)
			}
			if got := strings.Join(by, "; and by "); room.More != test.more || got != test.by || room.AtLeast || room.LimitedBy[0].Never != test.never {
				t.Errorf("got %d by %q, never %t", room.More, got, room.LimitedBy[0].Never)
			}
		})
	}
}

func TestF03OverheadOfASandbox(t *testing.T) {
	kata := nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Overhead: &nodev1.Overhead{PodFixed: list("cpu=250m memory=160Mi")}}
	pod := func(class string) *corev1.Pod {
		p := placement.SandboxPod("ns", placement.Share{Memory: 2 << 30, CPU: 2000}, placement.Rules{})
		p.Spec.RuntimeClassName = &class
		return p
	}
	facts := &placement.Facts{RuntimeClasses: []nodev1.RuntimeClass{kata}, Nodes: []corev1.Node{machine("n", "cpu=2 memory=4Gi")}}
	room := placement.Room(pod("kata"), facts, placement.RoomOptions{})
	if room.More != 0 || !room.LimitedBy[0].Never || room.LimitedBy[0].Text != "the nodes (n: is too small: cpu 2 allocatable of 2250m wanted)" {
		t.Errorf("got %s", room)
	}
	// Two need 4500m of the quota's 4.
	facts.Nodes = []corev1.Node{machine("n", "cpu=16 memory=64Gi")}
	facts.Quotas = []corev1.ResourceQuota{quota("q", "requests.cpu=4", "requests.cpu=0")}
	if room := placement.Room(pod("kata"), facts, placement.RoomOptions{}); room.More != 1 || room.LimitedBy[0].Text != "quota q: requests.cpu 0 used of 4, 2250m each" {
		t.Errorf("got %s", room)
	}
	// Siblings: a class that nobody has, one that nobody looked for, and one with a place of its own.
	if room := placement.Room(pod("gone"), facts, placement.RoomOptions{}); room.More != 0 || room.LimitedBy[0].On != placement.OnRuntimeClass || !room.LimitedBy[0].Never {
		t.Errorf("got %s", room)
	}
	if room := placement.Room(pod("kata"), &placement.Facts{Nodes: facts.Nodes}, placement.RoomOptions{}); room.More != 8 {
		t.Errorf("got %s", room)
	}
	kata.Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "yes"}, Tolerations: []corev1.Toleration{{Key: "kata", Operator: "Exists"}}}
	own := &placement.Facts{RuntimeClasses: []nodev1.RuntimeClass{kata}, Nodes: []corev1.Node{machine("n", "cpu=16 memory=64Gi"), labeled(machine("k", "cpu=5 memory=64Gi", "kata:NoSchedule"), map[string]string{"kata": "yes"})}}
	if room := placement.Room(pod("kata"), own, placement.RoomOptions{}); room.More != 2 || room.Nodes[0].More != 0 || room.Nodes[1].More != 2 {
		t.Errorf("got %s", room)
	}
	for overhead, tiny := range map[string]bool{"memory=1024": true, "memory=160Mi": false, "cpu=1": false, "memory=0": false, "memory=1Mi": false} {
		if placement.TinyOverhead(list(overhead)) != tiny {
			t.Errorf("%s", overhead)
		}
	}
}

func limitRange(kind corev1.LimitType, change func(*corev1.LimitRangeItem)) corev1.LimitRange {
	item := corev1.LimitRangeItem{Type: kind}
	change(&item)
	return corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "lr", Namespace: "ns"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
}

func TestRoomWithLimitRanges(t *testing.T) {
	q := []corev1.ResourceQuota{quota("q", "requests.cpu=1 limits.cpu=4", "requests.cpu=0 limits.cpu=0")}
	defaults := limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.DefaultRequest, i.Default = list("cpu=250m"), list("cpu=500m") })
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		ranges []corev1.LimitRange
		more   int64
		by     string
	}{
		"F16 e: defaults state what the quota wants": {asking(""), []corev1.LimitRange{defaults}, 4, "quota q: requests.cpu 0 used of 1, 250m each"},
		"without them it is refused":                 {asking(""), nil, 0, "quota q: wants every container to state limits.cpu, requests.cpu"},
		"what is stated stays": {func() *corev1.Pod {
			p := asking("cpu=100m")
			p.Spec.Containers[0].Resources.Limits = list("cpu=2")
			return p
		}(), []corev1.LimitRange{defaults}, 2, "quota q: limits.cpu 0 used of 4, 2 each"},
		"a pod over its bound":         {sandbox(), []corev1.LimitRange{limitRange(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) { i.Max = list("memory=1Gi") })}, 0, "limit range lr: memory of the pod is 2Gi, and at most 1Gi is allowed"},
		"a container over its bound":   {sandbox(), []corev1.LimitRange{limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Max = list("memory=1Gi") })}, 0, "limit range lr: memory of container harness is 1984Mi, and at most 1Gi is allowed"},
		"a container below its bound":  {sandbox(), []corev1.LimitRange{limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Min = list("cpu=100m") })}, 0, "limit range lr: cpu of container custodian is 50m, and at least 100m is wanted"},
		"no limit where one is wanted": {asking("cpu=1"), []corev1.LimitRange{limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Max = list("cpu=2") })}, 0, "limit range lr: cpu of container app has no limit, and at most 2 is allowed"},
		"a ratio": {func() *corev1.Pod {
			p := asking("cpu=100m")
			p.Spec.Containers[0].Resources.Limits = list("cpu=1")
			return p
		}(), []corev1.LimitRange{limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = list("cpu=4") })}, 0, "limit range lr: cpu of container app has the limit 1 and the request 100m, and at most 4 times the request is allowed"},
		"claims are no pods": {sandbox(), []corev1.LimitRange{limitRange(corev1.LimitTypePersistentVolumeClaim, func(i *corev1.LimitRangeItem) { i.Max = list("storage=1Gi") })}, 1, "quota q: requests.cpu 0 used of 1, 1 each"},
	} {
		room := placement.Room(test.pod, &placement.Facts{Quotas: q, LimitRanges: test.ranges}, placement.RoomOptions{})
		if len(room.LimitedBy) == 0 || room.More != test.more || room.LimitedBy[0].Text != test.by {
			t.Errorf("%s: got %s", name, room)
		}
	}
}

func TestRoomOnNodes(t *testing.T) {
	apart := asking("cpu=1")
	apart.Labels = map[string]string{"app": "s"}
	apart.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: apart.Labels}, TopologyKey: corev1.LabelHostname}}}}
	together := apart.DeepCopy()
	together.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
	port := asking("")
	port.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
	zoned := func(name, zone, has string) corev1.Node {
		return labeled(machine(name, has), map[string]string{"zone": zone})
	}
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		nodes []corev1.Node
		pods  []corev1.Pod
		more  []int64 // per node
		by    string
	}{
		"whole ones alone": {asking("cpu=2"), []corev1.Node{machine("a", "cpu=5"), machine("b", "cpu=3")}, nil, []int64{2, 1}, "the nodes (a, b: has no room: cpu 1 free of 2 wanted)"},
		"less what runs":   {asking("cpu=2"), []corev1.Node{machine("a", "cpu=5")}, []corev1.Pod{on("a", "cpu=2")}, []int64{1}, "the nodes (a: has no room: cpu 1 free of 2 wanted)"},
		"slots":            {asking(""), []corev1.Node{machine("a", "pods=3")}, []corev1.Pod{on("a", "")}, []int64{2}, "the nodes (a: has no free pod slot: pods 3/3)"},
		"one a port":       {port, []corev1.Node{machine("a", ""), machine("b", "")}, nil, []int64{1, 1}, "the nodes (a, b: has a pod that holds the host port that the pod wants)"},
		"one a node":       {apart, []corev1.Node{machine("a", "cpu=8"), machine("b", "cpu=8")}, nil, []int64{1, 1}, "the nodes (a, b: has a pod that the pod's anti-affinity keeps away from)"},
		"all on one node":  {together, []corev1.Node{machine("a", "cpu=2"), machine("b", "cpu=3")}, nil, []int64{2, 0}, "the nodes (a: has no room: cpu 0 free of 1 wanted; b: has no pod that the pod's affinity wants to be with)"},
		"even over zones":  {spreading(), []corev1.Node{zoned("a", "x", "cpu=20 memory=64Gi"), zoned("b", "y", "cpu=5 memory=64Gi")}, nil, []int64{3, 2}, "the nodes (a: has 3 such pods in zone=x where another has 2, and the pod's topology spread constraint allows a difference of 1; b: has no room: cpu 1 free of 2 wanted)"},
		"not now":          {asking("cpu=1"), []corev1.Node{machine("a", "cpu=8", "node.kubernetes.io/not-ready:NoSchedule")}, nil, []int64{0}, "the nodes (a: has the taint node.kubernetes.io/not-ready:NoSchedule for now; it is expected to clear by itself)"},
		"no node":          {asking("cpu=1"), []corev1.Node{}, nil, nil, "the nodes (the cluster has no node)"},
		"another's windows": {asking("cpu=1"), []corev1.Node{func() corev1.Node {
			n := machine("w", "cpu=8")
			n.Status.NodeInfo.OperatingSystem = "windows"
			return n
		}()}, nil, []int64{0}, "the nodes (w: runs windows, and the pod is for linux)"},
	} {
		t.Run(name, func(t *testing.T) {
			room := placement.Room(test.pod, &placement.Facts{Nodes: test.nodes, Pods: test.pods}, placement.RoomOptions{})
			var more []int64
			sum := int64(0)
			for _, n := range room.Nodes {
				more, sum = append(more, n.More), sum+n.More
			}
			if !slices.Equal(more, test.more) || room.More != sum || room.LimitedBy[0].Text != test.by {
				t.Errorf("got %v: %s", more, room)
			}
		})
	}
}

// TestRoomIsWhatOneByOneGives compares the count with placing pods one at a time by Explain.
func TestRoomIsWhatOneByOneGives(t *testing.T) {
	nodes, pods := many(60)
	for _, pod := range []*corev1.Pod{asking("cpu=1"), asking("cpu=700m memory=3Gi"), spreading(), asking("memory=33Gi")} {
		room := placement.Room(pod, &placement.Facts{Nodes: nodes, Pods: pods}, placement.RoomOptions{})
		running, placed := slices.Clone(pods), int64(0)
		for {
			where := placement.Explain(pod, nodes, placement.ExplainOptions{Pods: running}).With(placement.Usable)
			if len(where) == 0 {
				break
			}
			one := pod.DeepCopy()
			one.Spec.NodeName = where[0]
			running, placed = append(running, *one), placed+1
		}
		if room.More != placed {
			t.Errorf("room for %d, %d were placed", room.More, placed)
		}
	}
}

func TestRoomStopsCounting(t *testing.T) {
	pod := spreading()
	nodes := []corev1.Node{labeled(machine("a", "cpu=200 memory=1Ti"), map[string]string{"zone": "x"})}
	room := placement.Room(pod, &placement.Facts{Nodes: nodes, Pods: []corev1.Pod{}, Quotas: []corev1.ResourceQuota{}, LimitRanges: []corev1.LimitRange{}}, placement.RoomOptions{Most: 7})
	if room.More != 7 || !room.AtLeast || room.String() != "at least 7 more of memory 2Gi, cpu 2" {
		t.Errorf("got %s", room)
	}
}

func TestRoomSaysWhatNobodyRead(t *testing.T) {
	room := placement.Room(sandbox(), &placement.Facts{Nodes: []corev1.Node{machine("a", "cpu=1 memory=8Gi")}}, placement.RoomOptions{})
	if want := "1 more of memory 2Gi, cpu 1; limited by the nodes (a: has no room: cpu 0 free of 1 wanted); not read: pods, resourcequotas, limitranges"; room.String() != want {
		t.Errorf("got %s", room)
	}
}

func TestAdmitNamesTheDefaultPriority(t *testing.T) {
	facts := &placement.Facts{
		PriorityClasses: []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "normal"}, GlobalDefault: true}, {ObjectMeta: metav1.ObjectMeta{Name: "high"}}},
		Quotas:          []corev1.ResourceQuota{quota("q", "pods=1", "pods=0", selected(corev1.ScopeSelectorOpIn, "normal"))},
	}
	pod := asking("cpu=1")
	if room := placement.Room(pod, facts, placement.RoomOptions{}); room.More != 1 {
		t.Errorf("got %s", room)
	}
	if pod.Spec.PriorityClassName != "" {
		t.Error("the pod given was changed")
	}
}

func ExampleRoom() {
	facts := &placement.Facts{
		Nodes:       []corev1.Node{machine("agents-1", "cpu=8 memory=32Gi"), machine("agents-2", "cpu=8 memory=32Gi")},
		Pods:        []corev1.Pod{},
		LimitRanges: []corev1.LimitRange{},
		Quotas:      []corev1.ResourceQuota{quota("team-quota", "limits.memory=8Gi", "limits.memory=2Gi")},
	}
	pod := placement.SandboxPod("ns", placement.Share{Memory: 2 << 30, CPU: 1000}, placement.Rules{})
	room := placement.Room(pod, facts, placement.RoomOptions{Objects: placement.SandboxObjects()})
	fmt.Println(room)
	// Output: 3 more of memory 2Gi, cpu 1; limited by quota team-quota: limits.memory 2Gi used of 8Gi, 2Gi each
}

func ExampleFacts_Admit() {
	facts := &placement.Facts{LimitRanges: []corev1.LimitRange{limitRange(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.DefaultRequest = list("cpu=250m") })}}
	pod, refused := facts.Admit(asking(""))
	fmt.Println(pod.Spec.Containers[0].Resources.Requests.Cpu(), len(refused))
	// Output: 250m 0
}
