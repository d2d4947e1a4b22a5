package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/preflight"
)

const controlPlane = "node-role.kubernetes.io/control-plane:NoSchedule"

// schedulable runs the check with no pods in the cluster.
func schedulable(t *testing.T, text string, nodes ...corev1.Node) []preflight.Finding {
	t.Helper()
	return preflight.Schedulability(manifests(t, text), preflight.SetFacts{Nodes: nodes, Pods: []corev1.Pod{}})
}

// TestA08Schedulability: "a cluster you can schedule on" is checked, and no toleration is added.
func TestA08Schedulability(t *testing.T) {
	pod := func(spec string) string {
		return workloadYAML("Deployment", "api", "", `{`+spec+`containers: [{name: api, image: "`+pinned+`", resources: {requests: {cpu: "2"}}}]}`)
	}
	cordoned := node("w-9")
	cordoned.Spec.Unschedulable = true
	windows := node("win-1", "pool=web")
	windows.Status.NodeInfo.OperatingSystem = "windows"
	silent := node("new")
	silent.Status.Allocatable = nil
	for name, test := range map[string]struct {
		text  string
		nodes []corev1.Node
		want  []string
	}{
		"one node is enough": {pod(""), []corev1.Node{node("cp-1", controlPlane), node("w-1")}, nil},
		"three control planes": {pod(""), []corev1.Node{node("cp-1", controlPlane), node("cp-2", controlPlane), node("cp-3", controlPlane)}, []string{
			"warn unschedulable Deployment jarvis/api: no node takes its pods, so they will stay Pending: cp-1, cp-2, cp-3: has the taint " + controlPlane +
				", which the pod does not tolerate — add a node without it, take it away (kubectl taint node NODE " + controlPlane + "-), or write the toleration into the pod template yourself (no toleration is added for you)"}},
		"tolerated": {pod("tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}], "), []corev1.Node{node("cp-1", controlPlane)}, nil},
		"a reason for each group": {pod("nodeSelector: {pool: web}, "), []corev1.Node{node("a", "pool=db"), node("b"), cordoned, with(node("c", "pool=web"), "cpu=1"), node("d", "pool=web", "x=y:NoExecute"), windows}, []string{
			"warn unschedulable Deployment jarvis/api: a: has the label pool=db, and the pod's nodeSelector requires pool=web; b: lacks the label pool that the pod's nodeSelector requires; " +
				"w-9: is cordoned; c: is too small: cpu 1 allocatable of 2 wanted; d: has the taint x=y:NoExecute, which the pod does not tolerate; win-1: runs windows, and the pod is for linux — " +
				"label a node (kubectl label node NODE pool=web), or correct the nodeSelector; or kubectl uncordon w-9; or lower the requests, or add a larger node; or "}},
		"many nodes are counted": {pod(""), []corev1.Node{node("1", controlPlane), node("2", controlPlane), node("3", controlPlane), node("4", controlPlane), node("5", controlPlane), node("6", controlPlane), node("7", controlPlane)},
			[]string{"warn unschedulable Deployment jarvis/api: 1, 2, 3, 4, 5 and 2 more: has the taint"}},
		"required affinity": {pod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]}}}, `),
			[]corev1.Node{node("a", "disk=hdd")}, []string{"warn unschedulable Deployment jarvis/api: a: does not match the node affinity that the pod requires"}},
		"preferred affinity": {pod(`affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}}]}}, `),
			[]corev1.Node{node("a")}, nil},
		"a device that no node has": {workloadYAML("Deployment", "gpu", "", `{containers: [{name: a, image: "`+pinned+`", resources: {limits: {example.com/gpu: 1}}}]}`), []corev1.Node{with(node("a"), "cpu=4")},
			[]string{"warn unschedulable Deployment jarvis/gpu: a: is too small: example.com/gpu 0 allocatable of 1 wanted"}},
		"what a node has not reported is waited for": {pod(""), []corev1.Node{silent}, []string{"note not-schedulable-yet Deployment jarvis/api: new: has not reported yet what it has"}},
		"memory of one and cpu of another do not add up": {workloadYAML("Deployment", "api", "", `{containers: [{name: a, image: "`+pinned+`", resources: {requests: {cpu: "4", memory: 4Gi}}}]}`),
			[]corev1.Node{with(node("a"), "cpu=8", "memory=1Gi"), with(node("b"), "cpu=1", "memory=8Gi")},
			[]string{"warn unschedulable Deployment jarvis/api: a: is too small: memory 1Gi allocatable of 4Gi wanted; b: is too small: cpu 1 allocatable of 4 wanted"}},
		"no node":                                {pod(""), []corev1.Node{}, []string{"warn unschedulable Deployment jarvis/api: the cluster has no node"}},
		"no replicas":                            {workloadYAML("Deployment", "api", "replicas: 0", `{containers: [{name: a, image: "`+pinned+`"}]}`), []corev1.Node{node("a", controlPlane)}, nil},
		"a DaemonSet for nodes that are not yet": {workloadYAML("DaemonSet", "d", "", `{nodeSelector: {gpu: "yes"}, containers: [{name: a, image: "`+pinned+`"}]}`), []corev1.Node{node("a")}, []string{"note unschedulable DaemonSet jarvis/d: so it has none"}},
		"a DaemonSet tolerates a cordon":         {workloadYAML("DaemonSet", "d", "", `{containers: [{name: a, image: "`+pinned+`"}]}`), []corev1.Node{cordoned}, nil},
		"a scheduler of its own":                 {pod("schedulerName: volcano, "), []corev1.Node{node("a", controlPlane)}, []string{"note not-looked-at nodes: Deployment jarvis/api (volcano)"}},
		"a pod for windows":                      {pod("os: {name: windows}, "), []corev1.Node{node("a"), windows}, nil},
	} {
		t.Run(name, func(t *testing.T) { says(t, schedulable(t, test.text, test.nodes...), test.want...) })
	}
}

// TestNeighborsOfASet: what runs decides by host ports and affinity too; what arrives with the set is expected, and what it replaces is gone.
func TestNeighborsOfASet(t *testing.T) {
	facts := preflight.SetFacts{Nodes: []corev1.Node{node("a")}, Pods: []corev1.Pod{running("other", "web", "a")}}
	facts.Pods[0].Labels = map[string]string{"app": "web"}
	facts.Pods[0].Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
	pod := func(name, more string) string {
		return workloadYAML("Deployment", name, "", `{`+more+`containers: [{name: a, image: "`+pinned+`"}]}`)
	}
	near := func(app string) string {
		return `affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: ` + app + `}}}]}}, `
	}
	port := workloadYAML("Deployment", "web", "", `{containers: [{name: a, image: "`+pinned+`", ports: [{containerPort: 80, hostPort: 80}]}]}`)
	says(t, preflight.Schedulability(manifests(t, port), facts), "warn unschedulable Deployment jarvis/web: a: has a pod that holds the host port that the pod wants — free the host port")
	apart := `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaces: [other], labelSelector: {matchLabels: {app: web}}}]}}, `
	says(t, preflight.Schedulability(manifests(t, pod("api", apart)), facts), "warn unschedulable Deployment jarvis/api: a: has a pod that the pod's anti-affinity keeps away from — add a node")
	facts.Pods[0].Namespace = "jarvis" // where it is one of the pods that the set replaces
	says(t, preflight.Schedulability(manifests(t, port), facts))

	says(t, preflight.Schedulability(manifests(t, pod("api", near("cache"))), facts), "warn unschedulable Deployment jarvis/api: a: has no pod that the pod's affinity wants to be with — start first")
	says(t, preflight.Schedulability(manifests(t, pod("api", near("cache"))+pod("cache", "")), facts))
	says(t, preflight.Schedulability(manifests(t, pod("api", near("api"))), facts))
	facts.Pods = nil
	says(t, without(preflight.Schedulability(manifests(t, pod("api", near("cache"))), facts), preflight.CodeNotLookedAt))
}

// TestF07StartupTaintsOfASet: a taint that is expected to clear is waited for, a node that leaves is none.
func TestF07StartupTaintsOfASet(t *testing.T) {
	text := workloadYAML("Deployment", "api", "", `{containers: [{name: api, image: "`+pinned+`"}]}`)
	a, b := node("A", "node.cilium.io/agent-not-ready:NoExecute"), node("B", "startup-taint.cluster-autoscaler.kubernetes.io/x:NoSchedule")
	c, d, e := node("C", "ToBeDeletedByClusterAutoscaler:NoSchedule"), node("D", "node.kubernetes.io/not-ready:NoSchedule"), node("E", "x=y:PreferNoSchedule")
	says(t, schedulable(t, text, a, b, c, d, e))
	says(t, schedulable(t, text, a, b, c, d), "note not-schedulable-yet Deployment jarvis/api: A: has the taint node.cilium.io/agent-not-ready:NoExecute for now; it is expected to clear by itself")
	says(t, schedulable(t, text, c), "warn unschedulable Deployment jarvis/api: C: is being removed (taint ToBeDeletedByClusterAutoscaler:NoSchedule)")
	tolerant := workloadYAML("Deployment", "api", "", `{tolerations: [{operator: Exists}], containers: [{name: api, image: "`+pinned+`"}]}`)
	says(t, schedulable(t, tolerant, c), "warn unschedulable Deployment jarvis/api: C: is being removed")
	says(t, schedulable(t, tolerant, a))
}

// TestF02SidecarsOfASet: a native sidecar counts beside what comes after it.
func TestF02SidecarsOfASet(t *testing.T) {
	const proxy = `{name: proxy, image: "` + pinned + `", restartPolicy: Always, resources: {requests: {cpu: 300m}}}`
	const migrate = `{name: migrate, image: "` + pinned + `", resources: {requests: {cpu: 500m}}}`
	pod := func(first, second, more string) string {
		return workloadYAML("Deployment", "api", "", `{`+more+`initContainers: [`+first+`, `+second+`], containers: [{name: app, image: "`+pinned+`", resources: {requests: {cpu: 400m}}}]}`)
	}
	small := with(node("a"), "cpu=750m")
	says(t, schedulable(t, pod(proxy, migrate, ""), small), "warn unschedulable Deployment jarvis/api: cpu 750m allocatable of 800m wanted")
	says(t, schedulable(t, pod(migrate, proxy, ""), small))
	says(t, schedulable(t, pod(proxy, migrate, "overhead: {cpu: 250m}, "), small), "warn unschedulable Deployment jarvis/api: cpu 750m allocatable of 1050m wanted")
	// The pod's own requests stand for those of its containers.
	says(t, schedulable(t, pod(proxy, migrate, `resources: {requests: {cpu: 700m}}, `), small))
	says(t, schedulable(t, pod(migrate, proxy, `resources: {limits: {cpu: "2"}}, `), small))
}

// TestF03OverheadOfASet: the overhead of a RuntimeClass is in no manifest, and counts.
func TestF03OverheadOfASet(t *testing.T) {
	sandbox := workloadYAML("Deployment", "sandbox", "", `{runtimeClassName: kata, containers: [{name: a, image: "`+pinned+`", resources: {limits: {cpu: "2", memory: 2Gi}}}]}`)
	kata := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata", Overhead: &nodev1.Overhead{PodFixed: amountsOf("cpu=250m", "memory=160Mi")}}
	facts := preflight.SetFacts{Nodes: []corev1.Node{with(node("a"), "cpu=2", "memory=4Gi")}, Pods: []corev1.Pod{}, RuntimeClasses: map[string]*nodev1.RuntimeClass{"kata": kata}}
	const tooSmall = "warn unschedulable Deployment jarvis/sandbox: a: is too small: cpu 2 allocatable of 2250m wanted"
	says(t, preflight.Schedulability(manifests(t, sandbox), facts), tooSmall)

	facts.RuntimeClasses = map[string]*nodev1.RuntimeClass{}
	says(t, preflight.Schedulability(manifests(t, sandbox), facts), "warn runtime-class-missing Deployment jarvis/sandbox: the RuntimeClass kata, which neither the cluster nor the set has")
	arriving := `---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata, overhead: {podFixed: {cpu: 250m, memory: "1024"}}, scheduling: {nodeSelector: {kata: "yes"}}}`
	says(t, preflight.Schedulability(manifests(t, sandbox+arriving), facts),
		"warn runtime-class-overhead RuntimeClass kata: a memory overhead of 1024 bytes, and no sandbox runs in so little — write the unit: 1024Mi",
		"warn unschedulable Deployment jarvis/sandbox: a: lacks the label kata that the pod")
	facts.Nodes[0].Labels["kata"] = "yes"
	says(t, without(preflight.Schedulability(manifests(t, sandbox+arriving), facts), preflight.CodeRuntimeClassTiny), tooSmall)
	facts.RuntimeClasses = nil
	says(t, preflight.Schedulability(manifests(t, sandbox), facts), "note not-looked-at RuntimeClasses: kata")
}

// TestF20PodSlotsOfASet: a node without a free slot takes no pod, and free amounts are not added across nodes.
func TestF20PodSlotsOfASet(t *testing.T) {
	text := workloadYAML("Deployment", "sandbox", "", `{containers: [{name: a, image: "`+pinned+`", resources: {requests: {cpu: "4"}}}]}`)
	facts := preflight.SetFacts{Nodes: []corev1.Node{with(node("a"), "cpu=8", "memory=32Gi", "pods=8"), with(node("b"), "cpu=4", "pods=110"), with(node("c"), "cpu=4", "pods=110")}}
	for i := range 8 {
		facts.Pods = append(facts.Pods, running("other", string(rune('a'+i)), "a", "cpu=100m"))
	}
	ended := running("other", "ended", "a", "cpu=8")
	ended.Status.Phase = corev1.PodSucceeded
	facts.Pods = append(facts.Pods, ended, running("other", "b", "b", "cpu=1"), running("other", "c", "c", "cpu=1"))
	says(t, preflight.Schedulability(manifests(t, text), facts),
		"warn unschedulable Deployment jarvis/sandbox: no node has a place for one of its pods now, so they will stay Pending: a: has no free pod slot: pods 8/8; b, c: has no room: cpu 3 free of 4 wanted")
	facts.Pods[0].Status.Phase = corev1.PodFailed
	says(t, preflight.Schedulability(manifests(t, text), facts))

	// The pods that a release replaces do not stand in its way.
	own := running("jarvis", "sandbox-1", "b", "cpu=4")
	own.Labels = map[string]string{"app": "sandbox"}
	facts = preflight.SetFacts{Nodes: facts.Nodes[1:2], Pods: []corev1.Pod{own}}
	says(t, preflight.Schedulability(manifests(t, text), facts))
	facts.Pods[0].Namespace = "other"
	says(t, preflight.Schedulability(manifests(t, text), facts), "warn unschedulable Deployment jarvis/sandbox: b: has no room: cpu 0 free of 4 wanted")
}

// TestF21AllocatableOfASet: allocatable counts and not capacity, less what runs there.
func TestF21AllocatableOfASet(t *testing.T) {
	sized := func(memory string) string {
		return workloadYAML("Deployment", "sandbox", "", `{containers: [{name: a, image: "`+pinned+`", resources: {limits: {memory: `+memory+`}}}]}`)
	}
	n := with(node("a"), "memory=3106640Ki")
	n.Status.Capacity = amountsOf("memory=3788Mi")
	agent := running("kube-system", "agent", "a", "memory=100Mi")
	facts := preflight.SetFacts{Nodes: []corev1.Node{n}, Pods: []corev1.Pod{agent}}
	says(t, preflight.Schedulability(manifests(t, sized("3000Mi")), facts), "warn unschedulable Deployment jarvis/sandbox: no node has a place")
	says(t, preflight.Schedulability(manifests(t, sized("3100Mi")), facts), "warn unschedulable Deployment jarvis/sandbox: a: is too small: memory 3106640Ki allocatable of 3100Mi wanted")
	says(t, preflight.Schedulability(manifests(t, sized("2900Mi")), facts))
	facts.Pods = nil
	says(t, preflight.Schedulability(manifests(t, sized("3000Mi")), facts), "note not-looked-at pods: every node was taken to be empty")
}
