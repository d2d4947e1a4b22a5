package preflight_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/preflight"
)

// TestF02SumsOfASet is case F02 for workloads of a set: what its pod asks of a node is neither the sum nor the maximum of its containers.
func TestF02SumsOfASet(t *testing.T) {
	c := func(name, resource, amount string, more ...string) string {
		return "{name: " + name + ", image: \"" + pinned + "\", resources: {requests: {" + resource + ": " + amount + "}}" + strings.Join(more, "") + "}"
	}
	const always = ", restartPolicy: Always"
	pod := func(more string, app string, inits ...string) string {
		return "{" + more + "initContainers: [" + strings.Join(inits, ", ") + "], containers: [" + app + "]}"
	}
	proxy, migrate, app := c("proxy", "cpu", "300m", always), c("migrate", "cpu", "500m"), c("app", "cpu", "400m")
	small, scarce := with(node("a"), "cpu=750m"), with(node("a"), "memory=750Mi")
	for name, test := range map[string]struct {
		kind, pod string
		node      corev1.Node
		want      string
	}{
		"case 1: the sidecar first":      {"Deployment", pod("", app, proxy, migrate), small, "cpu 750m allocatable of 800m wanted"},
		"case 2: the sidecar last":       {"Deployment", pod("", app, migrate, proxy), small, ""},
		"case 3: overhead":               {"Deployment", pod("overhead: {cpu: 250m}, ", app, proxy, migrate), small, "cpu 750m allocatable of 1050m wanted"},
		"of a Job":                       {"Job", pod("restartPolicy: Never, ", app, proxy, migrate), small, "cpu 750m allocatable of 800m wanted"},
		"of a StatefulSet":               {"StatefulSet", pod("", app, proxy, migrate), small, "cpu 750m allocatable of 800m wanted"},
		"of memory":                      {"Deployment", pod("", c("app", "memory", "400Mi"), c("proxy", "memory", "300Mi", always), c("migrate", "memory", "500Mi")), scarce, "memory 750Mi allocatable of 800Mi wanted"},
		"two sidecars":                   {"Deployment", pod("", app, c("proxy", "cpu", "200m", always), c("log", "cpu", "200m", always)), small, "cpu 750m allocatable of 800m wanted"},
		"two sidecars, and one step":     {"Deployment", pod("", app, c("proxy", "cpu", "150m", always), c("log", "cpu", "150m", always), migrate), small, "cpu 750m allocatable of 800m wanted"},
		"one step before, one after":     {"Deployment", pod("", app, c("fetch", "cpu", "700m"), proxy, migrate), small, "cpu 750m allocatable of 800m wanted"},
		"the step before it is larger":   {"Deployment", pod("", app, c("fetch", "cpu", "900m"), proxy), small, "cpu 750m allocatable of 900m wanted"},
		"steps alone are not added":      {"Deployment", pod("", app, c("a", "cpu", "700m"), c("b", "cpu", "700m")), small, ""},
		"the pod's own requests":         {"Deployment", pod("resources: {requests: {cpu: 700m}}, ", app, proxy, migrate), small, ""},
		"the pod's own, and they exceed": {"Deployment", pod("resources: {requests: {cpu: 800m}}, ", app), small, "cpu 750m allocatable of 800m wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = []string{"warn unschedulable " + test.kind + " jarvis/api: " + test.want}
			}
			says(t, schedulable(t, workloadYAML(test.kind, "api", "", test.pod), test.node), want...)
		})
	}
}

// TestF03OverheadsOfASet is case F03 for workloads of a set: the overhead of a RuntimeClass is in no manifest.
func TestF03OverheadsOfASet(t *testing.T) {
	class := func(name string, amounts ...string) *nodev1.RuntimeClass {
		return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name, Overhead: &nodev1.Overhead{PodFixed: amountsOf(amounts...)}}
	}
	sandbox := func(kind, name string) string {
		return workloadYAML(kind, "sandbox", "", "{runtimeClassName: "+name+", containers: [{name: a, image: \""+pinned+"\", resources: {limits: {cpu: \"2\", memory: 2Gi}}}]}")
	}
	arriving := func(overhead string) string {
		return "\n---\n{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata, overhead: {podFixed: {" + overhead + "}}}\n"
	}
	const unplaced, missing, tiny = "warn unschedulable ", "warn runtime-class-missing ", "warn runtime-class-overhead RuntimeClass "
	for name, test := range map[string]struct {
		text    string
		classes []*nodev1.RuntimeClass
		want    []string
	}{
		"the case":              {sandbox("Deployment", "kata"), []*nodev1.RuntimeClass{class("kata", "cpu=250m", "memory=160Mi")}, []string{unplaced + "Deployment jarvis/sandbox: cpu 2 allocatable of 2250m wanted"}},
		"bytes without a unit":  {sandbox("Deployment", "kata"), []*nodev1.RuntimeClass{class("kata", "memory=1024")}, []string{tiny + "kata: RuntimeClass kata has a memory overhead of 1024 bytes, and no sandbox runs in so little — write the unit: 1024Mi"}},
		"no such class":         {sandbox("Deployment", "kata"), []*nodev1.RuntimeClass{class("gvisor")}, []string{missing + "Deployment jarvis/sandbox: name the RuntimeClass kata, which neither the cluster nor the set has"}},
		"of a Job":              {sandbox("Job", "kata"), []*nodev1.RuntimeClass{class("kata", "cpu=250m")}, []string{unplaced + "Job jarvis/sandbox: cpu 2 allocatable of 2250m wanted"}},
		"of memory":             {sandbox("Deployment", "kata"), []*nodev1.RuntimeClass{class("kata", "memory=3Gi")}, []string{unplaced + "Deployment jarvis/sandbox: memory 4Gi allocatable of 5Gi wanted"}},
		"it comes with the set": {sandbox("StatefulSet", "kata") + arriving("cpu: 1m"), []*nodev1.RuntimeClass{}, []string{unplaced + "StatefulSet jarvis/sandbox: cpu 2 allocatable of 2001m wanted"}},
		"the set changes it":    {sandbox("Deployment", "kata") + arriving("memory: 160Mi"), []*nodev1.RuntimeClass{class("kata", "cpu=250m", "memory=160Mi")}, nil},
		"kilobytes, and other words": {sandbox("Deployment", "kata"), []*nodev1.RuntimeClass{class("kata", "memory=160k")},
			[]string{tiny + "kata: has a memory overhead of 160000 bytes, and no sandbox runs in so little"}},
		"no such class, of a Job":      {sandbox("Job", "kata"), []*nodev1.RuntimeClass{}, []string{missing + "Job jarvis/sandbox: kata"}},
		"a class without an overhead":  {sandbox("Deployment", "kata"), []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "kata"}}}, nil},
		"an overhead that is believed": {sandbox("Deployment", "kata"), []*nodev1.RuntimeClass{class("kata", "memory=160Mi")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			facts := preflight.SetFacts{Nodes: []corev1.Node{with(node("a"), "cpu=2", "memory=4Gi")}, Pods: []corev1.Pod{}, RuntimeClasses: map[string]*nodev1.RuntimeClass{}}
			for _, c := range test.classes {
				facts.RuntimeClasses[c.Name] = c
			}
			says(t, preflight.Schedulability(manifests(t, test.text), facts), test.want...)
		})
	}
}
