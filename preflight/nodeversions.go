package preflight

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
)

// CodeNodeVersion is the stable code of a finding about nodes that are too old for what a pod uses.
const CodeNodeVersion = "node-version"

// A nodeFeature is what a pod may use and what that asks of the kubelet and of the container runtime of its node. An API server that is new enough
// says nothing about them: a kubelet may be three minors older.
type nodeFeature struct {
	what    string
	used    func(*corev1.PodSpec) bool
	outcome string // of a pod that lands on a node that is too old
	// kubelet is the release from which the feature is there unless somebody turns it off; from since on it is there where the gate is on.
	kubelet, since, gate string
	// runtimes are the releases from which each can do it; nil when it is no matter of the runtime.
	runtimes map[string]string
}

// nodeFeatures: the releases of the kubelet are those of the feature gates in pkg/features/kube_features.go of Kubernetes v1.36.3. The runtimes for
// image volumes are those of the source document, "Before you begin": containerd 2.1 (its release notes: "OCI image volumes") and CRI-O 1.31.
func nodeFeatures() []nodeFeature {
	return []nodeFeature{
		{what: "image volumes", outcome: "there the pod does not start", kubelet: "1.35", since: "1.31", gate: "ImageVolume",
			runtimes: map[string]string{"containerd": "2.1", "cri-o": "1.31"},
			used: func(s *corev1.PodSpec) bool {
				return slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Image != nil })
			}},
		{what: "pod-level resources", outcome: "there nobody keeps the pod to them", kubelet: "1.34", since: "1.32", gate: "PodLevelResources",
			used: func(s *corev1.PodSpec) bool { return s.Resources != nil }},
		{what: "init containers that go on beside the others", outcome: "there the pod waits for them to end, for ever", kubelet: "1.29", since: "1.28", gate: "SidecarContainers",
			used: func(s *corev1.PodSpec) bool {
				return slices.ContainsFunc(s.InitContainers, func(c corev1.Container) bool {
					return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
				})
			}},
	}
}

// NodeVersions warns of nodes on which a pod of the set can land, and whose kubelet or container runtime is too old for what it uses: image volumes,
// pod-level resources, and init containers that go on. A kubelet that needs a feature gate for it counts as too old, because nobody can see
// whether the gate is on. A version that is not reported or can't be read, and a runtime that nobody here knows, is a Note.
func NodeVersions(objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	return append(l.unread, l.nodeVersions()...)
}

func (l *setLook) nodeVersions() []Finding {
	var findings []Finding
	for _, w := range l.workloads {
		for _, f := range nodeFeatures() {
			if !f.used(&w.pod.Spec) {
				continue
			}
			if l.facts.Nodes == nil {
				return []Finding{notLooked("nodes", fmt.Sprintf("the nodes were not read, so nobody looked whether they can do what the pods use: %s of %s", f.what, w.object))}
			}
			findings = append(findings, f.check(w, l.landing(w))...)
		}
	}
	return findings
}

// An oldNodes is what is wrong with some nodes: "kubelet v1.34.6".
type oldNodes struct {
	version string
	nodes   []string
}

func (f nodeFeature) check(w *workload, nodes []corev1.Node) []Finding {
	var old, unclear []oldNodes
	bad := map[string]bool{}
	add := func(to *[]oldNodes, version, node string) {
		i := slices.IndexFunc(*to, func(o oldNodes) bool { return o.version == version })
		if i < 0 {
			*to, i = append(*to, oldNodes{version: version}), len(*to)
		}
		(*to)[i].nodes = append((*to)[i].nodes, node)
	}
	for i := range nodes {
		info, name := nodes[i].Status.NodeInfo, nodes[i].Name
		switch meets, err := MeetsFloor(&version.Info{GitVersion: info.KubeletVersion}, f.kubelet); {
		case err != nil:
			add(&unclear, "kubelet "+orNothing(info.KubeletVersion), name)
		case !meets:
			bad[name] = true
			add(&old, "kubelet "+info.KubeletVersion+f.byGate(info.KubeletVersion), name)
		}
		if f.runtimes == nil {
			continue
		}
		runtime, release, _ := strings.Cut(info.ContainerRuntimeVersion, "://")
		switch meets, err := MeetsFloor(&version.Info{GitVersion: release}, f.runtimes[runtime]); {
		case err != nil:
			add(&unclear, orNothing(info.ContainerRuntimeVersion), name)
		case !meets:
			bad[name] = true
			add(&old, runtime+" "+release, name)
		}
	}
	var findings []Finding
	if len(old) > 0 {
		findings = append(findings, f.tooOld(w, old, len(bad) == len(nodes)))
	}
	if len(unclear) > 0 {
		findings = append(findings, notLooked("nodes", fmt.Sprintf("nobody knows whether %s can do what %s uses (%s): %s", each(unclear, false), w.object, f.what, "the version is not reported, or the runtime is none that is known here")))
	}
	return findings
}

// byGate says that a kubelet has the feature behind a gate.
func (f nodeFeature) byGate(kubelet string) string {
	if ok, err := MeetsFloor(&version.Info{GitVersion: kubelet}, f.since); err != nil || !ok {
		return ""
	}
	return " without the feature gate " + f.gate
}

func (f nodeFeature) tooOld(w *workload, old []oldNodes, everywhere bool) Finding {
	finding := Finding{Severity: Warn, Code: CodeNodeVersion, Object: w.object, Fix: "upgrade these nodes, or keep the pods off them by a nodeSelector"}
	where := ""
	if everywhere {
		where, finding.Fix = ", and no other node takes the pod", "upgrade these nodes"
	}
	finding.Message = fmt.Sprintf("%s uses %s, which need %s: %s, and %s%s — %s", w.object, f.what, f.needs(), each(old, true), f.outcome, where, finding.Fix)
	return finding
}

// needs is "kubelet 1.35 or newer, and containerd 2.1 or cri-o 1.31".
func (f nodeFeature) needs() string {
	text := "kubelet " + f.kubelet + " or newer"
	var runtimes []string
	for name, release := range f.runtimes {
		runtimes = append(runtimes, name+" "+release)
	}
	if slices.Sort(runtimes); len(runtimes) > 0 {
		text += ", and " + strings.Join(runtimes, " or ")
	}
	return text
}

// each is "a, b: kubelet v1.34.6; c: containerd 1.7.27" or "kubelet (nothing) of a, b".
func each(all []oldNodes, nodesFirst bool) string {
	texts := make([]string, len(all))
	for i, o := range all {
		texts[i] = fmt.Sprintf("%s of %s", o.version, few(o.nodes))
		if nodesFirst {
			verb := "has"
			if len(o.nodes) > 1 {
				verb = "have"
			}
			texts[i] = fmt.Sprintf("%s %s %s", few(o.nodes), verb, o.version)
		}
	}
	return strings.Join(texts, "; ")
}

func orNothing(text string) string {
	if text == "" {
		return "(nothing reported)"
	}
	return text
}
