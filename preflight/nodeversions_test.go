package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/preflight"
)

// TestF14NodesThatAreTooOld is the second half of case F14: a kubelet that is behind the API server, and a runtime, are named by node where a pod of
// the set would land on them and uses what they can't do.
func TestF14NodesThatAreTooOld(t *testing.T) {
	running := func(name, kubelet, runtime string, marks ...string) corev1.Node {
		n := node(name, marks...)
		n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion = kubelet, runtime
		return n
	}
	pod := func(fields string) string {
		return workloadYAML("Deployment", "api", "", `{`+fields+`containers: [{name: api, image: "`+pinned+`"}]}`)
	}
	const image, whole = `volumes: [{name: v, image: {reference: "` + pinned + `"}}], `, `resources: {limits: {cpu: "1"}}, `
	sidecar := `initContainers: [{name: s, image: "` + pinned + `", restartPolicy: Always}], `
	fresh := running("new", "v1.36.1", "containerd://2.2.0")
	for name, test := range map[string]struct {
		text  string
		nodes []corev1.Node
		want  []string
	}{
		"a kubelet one minor behind": {pod(image), []corev1.Node{fresh, running("old", "v1.34.6", "containerd://2.1.3")}, []string{
			"warn node-version Deployment jarvis/api: uses image volumes, which need kubelet 1.35 or newer, and containerd 2.1 or cri-o 1.31: old has kubelet v1.34.6 without the feature gate ImageVolume, and there the pod does not start — " +
				"upgrade these nodes, or keep the pods off them by a nodeSelector"}},
		"a runtime that is too old": {pod(image), []corev1.Node{running("a", "v1.36.1", "containerd://1.7.27-gke.1"), running("b", "v1.36.1", "cri-o://1.30.4"), running("c", "v1.36.1", "cri-o://1.31.0")}, []string{
			"warn node-version Deployment jarvis/api: a has containerd 1.7.27-gke.1; b has cri-o 1.30.4, and there"}},
		"both, on the only nodes": {pod(image), []corev1.Node{running("a", "v1.30.2-eks-1552ad0", "containerd://1.7.27"), running("b", "v1.30.2-eks-1552ad0", "containerd://1.7.27")}, []string{
			"warn node-version Deployment jarvis/api: a, b have kubelet v1.30.2-eks-1552ad0; a, b have containerd 1.7.27, and there the pod does not start, and no other node takes the pod — upgrade these nodes"}},
		"pod-level resources": {pod(whole), []corev1.Node{fresh, running("a", "v1.33.4+k3s1", "containerd://1.7.0"), running("b", "v1.31.9", "")}, []string{
			"warn node-version Deployment jarvis/api: which need kubelet 1.34 or newer: a has kubelet v1.33.4+k3s1 without the feature gate PodLevelResources; b has kubelet v1.31.9, and there nobody keeps the pod to them"}},
		"a sidecar":                     {pod(sidecar), []corev1.Node{running("a", "v1.27.16", "")}, []string{"warn node-version Deployment jarvis/api: a has kubelet v1.27.16, and there the pod waits"}},
		"a release candidate":           {pod(image), []corev1.Node{running("a", "v1.35.0-rc.1", "containerd://2.1.0")}, []string{"warn node-version Deployment jarvis/api: a has kubelet v1.35.0-rc.1 without"}},
		"new enough":                    {pod(image + whole + sidecar), []corev1.Node{fresh, running("gke", "v1.35.1-gke.2000000", "containerd://2.1.0+unknown")}, nil},
		"where the pod does not land":   {pod(`nodeSelector: {pool: new}, ` + image), []corev1.Node{running("new", "v1.36.1", "containerd://2.2.0", "pool=new"), running("old", "v1.30.0", "containerd://1.7.27")}, nil},
		"a pod that uses nothing of it": {pod(""), []corev1.Node{running("old", "v1.27.0", "docker://20.10")}, nil},
		"what nobody knows": {pod(image), []corev1.Node{running("a", "", "kwok"), running("b", "v1.36.1", "docker://28.0.1")}, []string{
			"note not-looked-at nodes: kubelet (nothing reported) of a; kwok of a; docker://28.0.1 of b can do what Deployment jarvis/api uses (image volumes)"}},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, preflight.NodeVersions(manifests(t, test.text), preflight.SetFacts{Nodes: test.nodes, Pods: []corev1.Pod{}}), test.want...)
		})
	}
	says(t, preflight.NodeVersions(manifests(t, pod(image)), preflight.SetFacts{}), "note not-looked-at nodes: image volumes of Deployment jarvis/api")
	says(t, preflight.NodeVersions(manifests(t, pod("")), preflight.SetFacts{}))
}
