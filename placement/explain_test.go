package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/placement"
)

// list reads "cpu=4 memory=1Gi".
func list(text string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, part := range strings.Fields(text) {
		name, value, _ := strings.Cut(part, "=")
		all[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return all
}

// machine is a node with so much allocatable, the label of its name, and 110 slots if it does not say.
func machine(name, allocatable string, taints ...string) corev1.Node {
	n := labeled(node(name, taints...), map[string]string{corev1.LabelHostname: name})
	n.Status.Allocatable = list("pods=110 " + allocatable)
	return n
}

func container(name, requests string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(requests)}}
}

func sidecar(name, requests string) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c := container(name, requests)
	c.RestartPolicy = &always
	return c
}

func asking(requests string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{Containers: []corev1.Container{container("app", requests)}}}
}

// on is a pod that runs on a node.
func on(node, requests string) corev1.Pod {
	pod := asking(requests)
	pod.Name, pod.Spec.NodeName, pod.Status.Phase = "on-"+node, node, corev1.PodRunning
	return *pod
}

// told writes an explanation as "node answer: reason; reason", one line a node.
func told(e placement.Explanation) []string {
	var lines []string
	for _, n := range e.Nodes {
		line := n.Node + " " + string(n.Answer)
		for i, reason := range n.Reasons {
			line += map[bool]string{true: ": ", false: "; "}[i == 0] + reason.Text
		}
		lines = append(lines, line)
	}
	return lines
}

func TestExplain(t *testing.T) {
	small := func(pod *corev1.Pod) *corev1.Pod { return pod }
	gpu := placement.Rules{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: "Gt", Value: "1"}}}
	withRules := func(rules placement.Rules) *corev1.Pod {
		pod := asking("cpu=1")
		rules.Write(&pod.Spec)
		return pod
	}
	byName := func(names ...string) placement.Rules {
		return placement.Rules{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: names}}}}}}}}
	}
	byZone := placement.Rules{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}}}}}}
	port := func(number int32, ip string) *corev1.Pod {
		pod := asking("")
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: number, HostIP: ip}}
		return pod
	}
	running := func(pod *corev1.Pod, node string) corev1.Pod {
		pod.Spec.NodeName = node
		return *pod
	}
	windows := machine("n", "cpu=8")
	windows.Status.NodeInfo.OperatingSystem = "windows"
	fresh := node("n", "node.kubernetes.io/not-ready:NoSchedule")
	ended := on("n", "cpu=8")
	ended.Status.Phase = corev1.PodSucceeded
	leaving := on("n", "cpu=8")
	leaving.DeletionTimestamp = &metav1.Time{}
	nominated := asking("cpu=8")
	nominated.Status.NominatedNodeName = "n"

	for name, test := range map[string]struct {
		pod     *corev1.Pod
		nodes   []corev1.Node
		opts    placement.ExplainOptions
		want    []string
		message string
	}{
		"an empty node":      {pod: small(asking("cpu=1")), nodes: []corev1.Node{machine("n", "cpu=8")}, want: []string{"n usable"}},
		"no node":            {pod: asking(""), message: "no nodes available to schedule pods"},
		"a cordon":           {pod: asking(""), nodes: []corev1.Node{cordoned(machine("n", "", "node.kubernetes.io/unschedulable:NoSchedule"))}, want: []string{"n never: is cordoned"}, message: "0/1 nodes are available: 1 node(s) were unschedulable."},
		"a tolerated cordon": {pod: withRules(placement.Rules{Tolerations: []corev1.Toleration{{Operator: "Exists"}}}), nodes: []corev1.Node{cordoned(machine("n", "cpu=8", "node.kubernetes.io/unschedulable:NoSchedule"))}, want: []string{"n usable"}},
		"a lasting taint":    {pod: asking(""), nodes: []corev1.Node{machine("n", "", "a=b:NoExecute")}, want: []string{"n never: has the taint a=b:NoExecute, which the pod does not tolerate"}, message: "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
		"a soft taint":       {pod: asking(""), nodes: []corev1.Node{machine("n", "", "a=b:PreferNoSchedule")}, want: []string{"n usable"}},
		"a startup taint":    {pod: asking(""), nodes: []corev1.Node{machine("n", "", "node.cilium.io/agent-not-ready:NoExecute")}, want: []string{"n soon: has the taint node.cilium.io/agent-not-ready:NoExecute for now; it is expected to clear by itself"}},
		"both":               {pod: asking(""), nodes: []corev1.Node{machine("n", "", "node.cilium.io/agent-not-ready:NoExecute", "a:NoSchedule")}, want: []string{"n never: has the taint node.cilium.io/agent-not-ready:NoExecute for now; it is expected to clear by itself; has the taint a:NoSchedule, which the pod does not tolerate"}, message: "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
		"Gt":                 {pod: withRules(gpu), nodes: []corev1.Node{machine("one", "cpu=8", "gpu=1:NoSchedule"), machine("two", "cpu=8", "gpu=2:NoSchedule")}, want: []string{"one never: has the taint gpu=1:NoSchedule, which the pod does not tolerate", "two usable"}},
		"a node that goes":   {pod: asking(""), nodes: []corev1.Node{machine("n", "", "ToBeDeletedByClusterAutoscaler:NoSchedule")}, want: []string{"n never: is being removed (taint ToBeDeletedByClusterAutoscaler:NoSchedule)"}},
		"no such label":      {pod: withRules(placement.Rules{NodeSelector: map[string]string{"pool": "a"}}), nodes: []corev1.Node{machine("n", "cpu=8"), labeled(machine("m", "cpu=8"), map[string]string{"pool": "b"})}, want: []string{"n never: lacks the label pool that the pod's nodeSelector requires", "m never: has the label pool=b, and the pod's nodeSelector requires pool=a"}, message: "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."},
		"node affinity":      {pod: withRules(byZone), nodes: []corev1.Node{machine("n", "cpu=8")}, want: []string{"n never: does not match the node affinity that the pod requires"}},
		"by name":            {pod: withRules(byName("m")), nodes: []corev1.Node{machine("n", "cpu=8"), machine("m", "cpu=8")}, want: []string{"n never: does not match the node affinity that the pod requires", "m usable"}},
		"by name, elsewhere": {pod: withRules(byName("gone")), nodes: []corev1.Node{machine("n", "cpu=8", "a:NoSchedule")}, want: []string{"n never: does not match the node affinity that the pod requires; has the taint a:NoSchedule, which the pod does not tolerate"}, message: "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."},
		"another system":     {pod: asking(""), nodes: []corev1.Node{windows}, want: []string{"n never: runs windows, and the pod is for linux"}},
		"nothing reported":   {pod: asking("cpu=1"), nodes: []corev1.Node{fresh}, want: []string{"n soon: has the taint node.kubernetes.io/not-ready:NoSchedule for now; it is expected to clear by itself; has not reported yet what it has; has not reported yet what it has of cpu"}},
		"too small":          {pod: asking("cpu=64 memory=1Gi"), nodes: []corev1.Node{machine("n", "cpu=8 memory=512Mi")}, want: []string{"n never: is too small: cpu 8 allocatable of 64 wanted; is too small: memory 512Mi allocatable of 1Gi wanted"}, message: "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."},
		"no room":            {pod: asking("cpu=4"), nodes: []corev1.Node{machine("n", "cpu=8")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{on("n", "cpu=5")}}, want: []string{"n full: has no room: cpu 3 free of 4 wanted"}, message: "0/1 nodes are available: 1 Insufficient cpu."},
		"a device":           {pod: asking("nvidia.com/gpu=1"), nodes: []corev1.Node{machine("n", "cpu=8"), machine("g", "nvidia.com/gpu=1")}, want: []string{"n never: is too small: nvidia.com/gpu 0 allocatable of 1 wanted", "g usable"}},
		"who has ended":      {pod: asking("cpu=4"), nodes: []corev1.Node{machine("n", "cpu=8")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{ended}}, want: []string{"n usable"}},
		"who is leaving":     {pod: asking("cpu=4"), nodes: []corev1.Node{machine("n", "cpu=8")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{leaving}}, want: []string{"n full: has no room: cpu 0 free of 4 wanted"}},
		"who has preempted":  {pod: asking("cpu=4"), nodes: []corev1.Node{machine("n", "cpu=8")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{*nominated}}, want: []string{"n full: has no room: cpu 0 free of 4 wanted"}},
		"who gives way":      {pod: asking("cpu=4"), nodes: []corev1.Node{machine("n", "cpu=8")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{on("n", "cpu=8")}, GivesWay: func(p *corev1.Pod) bool { return p.Name == "on-n" }}, want: []string{"n usable"}},
		"a taken port":       {pod: port(8080, ""), nodes: []corev1.Node{machine("n", "")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{running(port(8080, "10.0.0.1"), "n")}}, want: []string{"n full: has a pod that holds the host port that the pod wants"}, message: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."},
		"another address":    {pod: port(8080, "10.0.0.2"), nodes: []corev1.Node{machine("n", "")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{running(port(8080, "10.0.0.1"), "n")}}, want: []string{"n usable"}},
		"a port and no room": {pod: func() *corev1.Pod {
			p := port(1, "")
			p.Spec.Containers[0].Resources.Requests = list("cpu=9")
			return p
		}(), nodes: []corev1.Node{machine("n", "cpu=8")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{running(port(1, ""), "n")}}, want: []string{"n never: has a pod that holds the host port that the pod wants; is too small: cpu 8 allocatable of 9 wanted"}, message: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."},
		"itself among others": {pod: func() *corev1.Pod { p := on("n", "cpu=8"); p.UID, p.Spec.NodeName = "u", ""; return &p }(), nodes: []corev1.Node{machine("n", "cpu=8")}, opts: placement.ExplainOptions{Pods: []corev1.Pod{func() corev1.Pod { p := on("n", "cpu=8"); p.UID = "u"; return p }()}}, want: []string{"n usable"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := placement.Explain(test.pod, test.nodes, test.opts)
			if !slices.Equal(told(got), test.want) {
				t.Errorf("got  %q\nwant %q", told(got), test.want)
			}
			if test.message != "" && got.Message() != test.message {
				t.Errorf("message %q", got.Message())
			}
			if (got.Message() == "") != (got.Best() == placement.Usable || name == "another system") {
				t.Errorf("best %s, message %q", got.Best(), got.Message())
			}
		})
	}
}

func named(name string, labels map[string]string) *corev1.Pod {
	pod := asking("")
	pod.Name, pod.Labels = name, labels
	return pod
}

func TestExplainAmongOthers(t *testing.T) {
	web := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: web}
	zone := func(name, zone string) corev1.Node {
		n := machine(name, "")
		n.Labels["zone"] = zone
		return n
	}
	spread := func(skew int32, key string, change ...func(*corev1.TopologySpreadConstraint)) *corev1.Pod {
		pod := named("p", web)
		constraint := corev1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}
		for _, f := range change {
			f(&constraint)
		}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
		return pod
	}
	terms := []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: corev1.LabelHostname}}
	apart := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		return pod
	}
	near := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		return pod
	}
	everywhere := func(pod *corev1.Pod) *corev1.Pod {
		pod = apart(pod)
		term := terms[0]
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
		pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
		return pod
	}
	at := func(pod *corev1.Pod, node string) corev1.Pod {
		pod.Spec.NodeName = node
		return *pod
	}
	other := func(pod *corev1.Pod) *corev1.Pod { pod.Namespace = "other"; return pod }
	gone := func(pod *corev1.Pod) *corev1.Pod { pod.DeletionTimestamp = &metav1.Time{}; return pod }
	two := []corev1.Node{zone("a", "x"), zone("b", "y")}
	for name, test := range map[string]struct {
		pod        *corev1.Pod
		nodes      []corev1.Node
		pods       []corev1.Pod
		namespaces map[string]map[string]string
		want       string // "node answer" and the code of the reason
	}{
		"even":                     {spread(1, "zone"), two, nil, nil, "a usable, b usable"},
		"one ahead":                {spread(1, "zone"), two, []corev1.Pod{at(named("1", web), "a")}, nil, "a full spread, b usable"},
		"a wider skew":             {spread(2, "zone"), two, []corev1.Pod{at(named("1", web), "a")}, nil, "a usable, b usable"},
		"others do not count":      {spread(1, "zone"), two, []corev1.Pod{at(named("1", nil), "a"), at(other(named("2", web)), "a"), at(gone(named("3", web)), "a")}, nil, "a usable, b usable"},
		"no such domain":           {spread(1, "zone"), []corev1.Node{zone("a", "x"), machine("n", "")}, nil, nil, "a usable, n never spread-key"},
		"too few domains":          {spread(1, "zone", func(c *corev1.TopologySpreadConstraint) { n := int32(3); c.MinDomains = &n }), two, []corev1.Pod{at(named("1", web), "a"), at(named("2", web), "b")}, nil, "a full spread, b full spread"},
		"a cordoned domain counts": {spread(1, "zone"), []corev1.Node{two[0], cordoned(two[1])}, []corev1.Pod{at(named("1", web), "a")}, nil, "a full spread, b never cordoned"},
		"a tainted domain is left out": {spread(1, "zone", func(c *corev1.TopologySpreadConstraint) {
			p := corev1.NodeInclusionPolicyHonor
			c.NodeTaintsPolicy = &p
		}), []corev1.Node{two[0], labeled(machine("b", "", "t:NoSchedule"), map[string]string{"zone": "y"})}, []corev1.Pod{at(named("1", web), "a")}, nil, "a usable, b never taint"},
		"when it need not hold":          {spread(1, "zone", func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }), two, []corev1.Pod{at(named("1", web), "a")}, nil, "a usable, b usable"},
		"apart":                          {apart(named("p", nil)), two, []corev1.Pod{at(named("1", web), "a")}, nil, "a full not-beside, b usable"},
		"apart from another namespace's": {apart(named("p", nil)), two, []corev1.Pod{at(other(named("1", web)), "a")}, nil, "a usable, b usable"},
		"apart by a namespace's label":   {everywhere(named("p", nil)), two, []corev1.Pod{at(other(named("1", web)), "a")}, map[string]map[string]string{"other": {"team": "x"}}, "a full not-beside, b usable"},
		"not wanted":                     {named("p", web), two, []corev1.Pod{at(apart(named("1", nil)), "b")}, nil, "a usable, b full not-wanted"},
		"near":                           {near(named("p", nil)), two, []corev1.Pod{at(named("1", web), "b")}, nil, "a full no-neighbor, b usable"},
		"near nobody":                    {near(named("p", nil)), two, nil, nil, "a full no-neighbor, b full no-neighbor"},
		"the first of its kind":          {near(named("p", web)), two, nil, nil, "a usable, b usable"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, n := range placement.Explain(test.pod, test.nodes, placement.ExplainOptions{Pods: test.pods, Namespaces: test.namespaces}).Nodes {
				line := n.Node + " " + string(n.Answer)
				if len(n.Reasons) > 0 {
					line += " " + string(n.Reasons[0].Code)
				}
				lines = append(lines, line)
			}
			if got := strings.Join(lines, ", "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestF02NativeSidecarsOfASandbox(t *testing.T) {
	migrate := container("migrate", "cpu=500m")
	proxy := sidecar("proxy", "cpu=300m")
	for name, test := range map[string]struct {
		inits    []corev1.Container
		overhead string
		want     string
		usable   bool
	}{
		"case 1: the sidecar first":      {[]corev1.Container{proxy, migrate}, "", "800m", false},
		"case 2: the sidecar after":      {[]corev1.Container{migrate, proxy}, "", "700m", true},
		"case 3: overhead":               {[]corev1.Container{proxy, migrate}, "cpu=250m", "1050m", false},
		"sibling: two sidecars":          {[]corev1.Container{proxy, sidecar("log", "cpu=50m")}, "", "750m", true},
		"sibling: between two init ones": {[]corev1.Container{container("x", "cpu=750m"), proxy, container("y", "cpu=100m")}, "", "750m", true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("cpu=400m")
			pod.Spec.InitContainers, pod.Spec.Overhead = test.inits, list(test.overhead)
			requests := placement.Requests(pod)
			if cpu := requests[corev1.ResourceCPU]; cpu.String() != test.want {
				t.Errorf("%s", cpu.String())
			}
			if best := placement.Explain(pod, []corev1.Node{machine("n", "cpu=750m")}, placement.ExplainOptions{}).Best(); (best == placement.Usable) != test.usable {
				t.Errorf("%s", best)
			}
			room := placement.Room(pod, &placement.Facts{Quotas: []corev1.ResourceQuota{quota("q", "requests.cpu=750m", "requests.cpu=0")}}, placement.RoomOptions{})
			if (room.More == 1) != test.usable {
				t.Errorf("%s", room)
			}
		})
	}
}

func TestF20PodSlotsOfASandbox(t *testing.T) {
	var running []corev1.Pod
	for range 8 {
		running = append(running, on("full", "cpu=100m"))
	}
	running = append(running, on("busy", "cpu=5"), on("left", "cpu=5"), on("right", "cpu=5"))
	full := machine("full", "cpu=8 memory=32Gi")
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("8")
	pod := asking("cpu=4")
	nodes := []corev1.Node{full, machine("busy", "cpu=8"), machine("left", "cpu=8"), machine("right", "cpu=8")}
	got := placement.Explain(pod, nodes, placement.ExplainOptions{Pods: running})
	want := []string{"full full: has no free pod slot: pods 8/8", "busy full: has no room: cpu 3 free of 4 wanted", "left full: has no room: cpu 3 free of 4 wanted", "right full: has no room: cpu 3 free of 4 wanted"}
	if !slices.Equal(told(got), want) {
		t.Errorf("got %q", told(got))
	}
	if room := placement.Room(pod, &placement.Facts{Nodes: nodes, Pods: running}, placement.RoomOptions{}); room.More != 0 || room.LimitedBy[0].Never {
		t.Errorf("three free on each of three nodes is room for none of four: %s", room)
	}
	// A sibling: those that have ended take no slot.
	for i := range 8 {
		running[i].Status.Phase = []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}[i%2]
	}
	if got := placement.Explain(pod, nodes, placement.ExplainOptions{Pods: running}); got.Nodes[0].Answer != placement.Usable {
		t.Errorf("got %q", told(got))
	}
	// A sibling: a node without slots never takes one.
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0")
	if got := placement.Explain(pod, []corev1.Node{full}, placement.ExplainOptions{}); got.Best() != placement.Never {
		t.Errorf("got %q", told(got))
	}
}

func daemonSet(name, requests string, change ...func(*corev1.PodSpec)) appsv1.DaemonSet {
	set := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system", UID: types.UID(name)}}
	set.Spec.Template.Spec.Containers = []corev1.Container{container("agent", requests)}
	for _, f := range change {
		f(&set.Spec.Template.Spec)
	}
	return set
}

func TestF21AllocatableOfASandbox(t *testing.T) {
	n := machine("n", "memory=3106640Ki")
	n.Status.Capacity = list("memory=3788Mi")
	pod := asking("memory=3000Mi")
	agent := daemonSet("agent", "memory=100Mi")
	limited := daemonSet("limited", "")
	limited.Spec.Template.Spec.Containers[0].Resources.Limits = list("memory=100Mi")
	elsewhere := daemonSet("elsewhere", "memory=100Mi", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"gpu": "yes"} })
	controller := true
	runs := on("n", "memory=100Mi")
	runs.OwnerReferences = []metav1.OwnerReference{{UID: agent.UID, Controller: &controller}}
	filled := on("n", "memory=100Mi") // as a LimitRange of its namespace has filled it in
	for name, test := range map[string]struct {
		sets []appsv1.DaemonSet
		pods []corev1.Pod
		want placement.Answer
	}{
		"empty":                         {want: placement.Usable},
		"the case: a daemon is to come": {sets: []appsv1.DaemonSet{agent}, want: placement.Full},
		"the case: limits alone":        {sets: []appsv1.DaemonSet{limited}, want: placement.Full},
		"the case: a filled-in request": {pods: []corev1.Pod{filled}, want: placement.Full},
		"sibling: it is counted once": {sets: []appsv1.DaemonSet{daemonSet("agent", "memory=30Mi")}, pods: []corev1.Pod{func() corev1.Pod {
			p := runs
			p.Spec.Containers = []corev1.Container{container("agent", "memory=30Mi")}
			return p
		}()}, want: placement.Usable},
		"sibling: it lands elsewhere":    {sets: []appsv1.DaemonSet{elsewhere}, want: placement.Usable},
		"sibling: one that fits nowhere": {sets: []appsv1.DaemonSet{daemonSet("huge", "memory=1Ti")}, want: placement.Usable},
	} {
		t.Run(name, func(t *testing.T) {
			got := placement.Explain(pod, []corev1.Node{n}, placement.ExplainOptions{Pods: test.pods, DaemonSets: test.sets})
			if got.Best() != test.want {
				t.Errorf("%q", told(got))
			}
		})
	}
}

func TestF29AGateHoldsAPod(t *testing.T) {
	pod := asking("cpu=1")
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/admission"}}
	nodes := []corev1.Node{machine("n", "cpu=1")}
	got := placement.Explain(pod, nodes, placement.ExplainOptions{})
	if !slices.Equal(got.Gates, []string{"example.com/admission"}) || got.Message() != "" || got.Why() != "the pod is held by the scheduling gate example.com/admission" {
		t.Errorf("%v %q %q", got.Gates, got.Message(), got.Why())
	}
	if full := placement.Explain(pod, []corev1.Node{cordoned(nodes[0])}, placement.ExplainOptions{}); full.Message() != "" || full.Why() != got.Why() {
		t.Errorf("the scheduler does not speak of a gated pod: %q %q", full.Message(), full.Why())
	}
	// A sibling: a gated pod of the cluster holds nothing of a node, and is counted as held by its queue.
	room := placement.Room(asking("cpu=1"), &placement.Facts{Nodes: nodes, Pods: []corev1.Pod{*pod}}, placement.RoomOptions{})
	if room.More != 1 || room.Gated != 1 || room.Waiting != 0 {
		t.Errorf("%s %+v", room, room)
	}
	// A sibling: when the gate goes, the nodes decide.
	free := pod.DeepCopy()
	free.Spec.SchedulingGates = nil
	room = placement.Room(asking("cpu=1"), &placement.Facts{Nodes: nodes, Pods: []corev1.Pod{*free}}, placement.RoomOptions{})
	if room.Gated != 0 || room.Waiting != 1 || placement.Explain(free, nodes, placement.ExplainOptions{}).Best() != placement.Usable {
		t.Errorf("%s %+v", room, room)
	}
	// The room of a shape that is gated itself is the nodes' and the quotas', and the gate is told.
	if room := placement.Room(pod, &placement.Facts{Nodes: nodes}, placement.RoomOptions{}); room.More != 1 || !strings.Contains(room.String(), "waits for its scheduling gate example.com/admission") {
		t.Errorf("%s", room)
	}
}

func ExampleExplain() {
	pod := asking("cpu=4")
	nodes := []corev1.Node{machine("small", "cpu=2"), machine("busy", "cpu=8"), cordoned(machine("old", "cpu=8")), machine("fresh", "cpu=8", "node.kubernetes.io/not-ready:NoSchedule")}
	where := placement.Explain(pod, nodes, placement.ExplainOptions{Pods: []corev1.Pod{on("busy", "cpu=5")}})
	fmt.Println(where.Best(), where.With(placement.Soon))
	fmt.Println(where.Why())
	fmt.Println(where.Message())
	// Output:
	// soon [fresh]
	// small: is too small: cpu 2 allocatable of 4 wanted; busy: has no room: cpu 3 free of 4 wanted; old: is cordoned; fresh: has the taint node.kubernetes.io/not-ready:NoSchedule for now; it is expected to clear by itself
	// 0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu.
}

func ExampleRequests() {
	pod := asking("cpu=400m")
	pod.Spec.InitContainers = []corev1.Container{sidecar("proxy", "cpu=300m"), container("migrate", "cpu=500m")}
	requests := placement.Requests(pod)
	fmt.Println(requests.Cpu())
	// Output: 800m
}

func ExampleGates() {
	pod := asking("")
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	fmt.Println(placement.Gates(pod))
	// Output: [kueue.x-k8s.io/admission]
}

// many is a cluster of so many nodes, each with its own trouble or none, and two pods on each.
func many(count int) ([]corev1.Node, []corev1.Pod) {
	nodes, pods := make([]corev1.Node, 0, count), make([]corev1.Pod, 0, 2*count)
	for i := range count {
		name := fmt.Sprintf("node-%05d", i)
		var taints []string
		if i%7 == 0 {
			taints = []string{"pool=other:NoSchedule"}
		}
		n := labeled(machine(name, "cpu=8 memory=32Gi", taints...), map[string]string{"zone": fmt.Sprintf("z%d", i%3)})
		if i%11 == 0 {
			n = cordoned(n)
		}
		nodes = append(nodes, n)
		pods = append(pods, on(name, "cpu=2 memory=4Gi"), on(name, fmt.Sprintf("cpu=%d memory=4Gi", i%6)))
	}
	return nodes, pods
}

func spreading() *corev1.Pod {
	pod := asking("cpu=2 memory=2Gi")
	pod.Labels = map[string]string{"app": "s"}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
	return pod
}

// TestExplainGrowsWithTheNodes bounds the work: twice the nodes are twice the allocations, and few for each.
func TestExplainGrowsWithTheNodes(t *testing.T) {
	each := func(count int) float64 {
		nodes, pods := many(count)
		pod := spreading()
		return testing.AllocsPerRun(2, func() { placement.Explain(pod, nodes, placement.ExplainOptions{Pods: pods}) }) / float64(count)
	}
	few, twice := each(500), each(1000)
	t.Logf("%.1f and %.1f allocations a node", few, twice)
	if twice > 1.1*few || twice > 25 {
		t.Errorf("%.1f and %.1f allocations a node", few, twice)
	}
}

func TestExplainTellsThatANodeGoes(t *testing.T) {
	pod := asking("")
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: "Exists"}}
	got := placement.Explain(pod, []corev1.Node{machine("goes", "", "karpenter.sh/disrupted:NoSchedule"), machine("stays", "", "x:NoSchedule"), machine("soft", "", "karpenter.sh/disrupted:PreferNoSchedule")}, placement.ExplainOptions{})
	for _, n := range got.Nodes { // the scheduler binds there, so it is usable
		if n.Answer != placement.Usable || n.Leaving != (n.Node == "goes") {
			t.Errorf("%+v", n)
		}
	}
}

// A node that has just registered says nothing of what it has. The scheduler takes that for nothing.
func TestExplainOfANodeThatHasNotReported(t *testing.T) {
	got := placement.Explain(asking("cpu=1"), []corev1.Node{node("n")}, placement.ExplainOptions{})
	if got.Best() != placement.Soon || got.Message() != "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods." || got.Why() != "n: has not reported yet what it has" {
		t.Errorf("%s %q %q", got.Best(), got.Message(), got.Why())
	}
}

func TestWhyCountsManyNodes(t *testing.T) {
	var nodes []corev1.Node
	for i := range 9 {
		nodes = append(nodes, cordoned(machine(fmt.Sprint("n", i), "")))
	}
	if why := placement.Explain(asking(""), nodes, placement.ExplainOptions{}).Why(); why != "n0, n1, n2, n3, n4 and 4 more: is cordoned" {
		t.Errorf("got %s", why)
	}
}

func BenchmarkExplain(b *testing.B) {
	nodes, pods := many(10000)
	pod := spreading()
	b.ReportAllocs()
	for b.Loop() {
		placement.Explain(pod, nodes, placement.ExplainOptions{Pods: pods})
	}
}

func BenchmarkRoom(b *testing.B) {
	nodes, pods := many(10000)
	facts := &placement.Facts{Nodes: nodes, Pods: pods}
	for name, pod := range map[string]*corev1.Pod{"alone": asking("cpu=1 memory=1Gi"), "spread": spreading()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				placement.Room(pod, facts, placement.RoomOptions{})
			}
		})
	}
}
