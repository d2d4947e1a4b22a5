package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/preflight"
)

// TestPodsAreReadInPart: what is kept of pods decides as the whole does, for each thing that the Pod Security Standards look at and for a neighbor's
// amounts, labels and ports; and what a program is told is not kept.
func TestPodsAreReadInPart(t *testing.T) {
	t.Parallel()
	client := clientFor(t, sharedCluster(t).Config())
	makeNamespace(t, client, "in-part", nil)
	eventually(t, "pods are let in", func() bool {
		_, err := client.CoreV1().ServiceAccounts("in-part").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	var whole []corev1.Pod
	for i, change := range offences() {
		pod := told(fmt.Sprintf("p-%02d", i))
		change(pod)
		made, err := client.CoreV1().Pods("in-part").Create(t.Context(), pod, metav1.CreateOptions{})
		must(t, err)
		whole = append(whole, *made)
	}
	facts, err := preflight.ReadSetFacts(t.Context(), client)
	must(t, err)
	var part []corev1.Pod
	for _, pod := range facts.Pods {
		if pod.Namespace == "in-part" {
			part = append(part, pod)
		}
	}
	if len(part) != len(whole) {
		t.Fatalf("%d pods of %d", len(part), len(whole))
	}
	nodes := []corev1.Node{with(node("n"), "cpu=8", "memory=32Gi")}
	for i := range whole {
		if kept, all := part[i].Size(), whole[i].Size(); kept*2 > all || strings.Contains(part[i].String(), "a-setting") || part[i].ManagedFields != nil {
			t.Errorf("of %s %d bytes of %d are kept", part[i].Name, kept, all)
		}
		whole[i].Spec.NodeName, part[i].Spec.NodeName = "n", "n"
		for _, level := range []string{"baseline", "restricted"} {
			set := manifests(t, namespaceYAML("in-part", enforce+": "+level)+workloadIn("in-part", "Deployment", "d", "", `{hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 99}], resources: {requests: {cpu: "5"}}}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {lonely: "yes"}}}]}}}`))
			judged := func(pod corev1.Pod) string {
				facts := preflight.SetFacts{Nodes: nodes, Pods: []corev1.Pod{pod}, Namespaces: facts.Namespaces}
				return fmt.Sprint(preflight.Admission(t.Context(), set, facts), preflight.Schedulability(set, facts))
			}
			if got, want := judged(part[i]), judged(whole[i]); got != want {
				t.Errorf("%s at %s:\n%s\nand of the whole pod\n%s", part[i].Name, level, got, want)
			} else if i > 0 && !strings.Contains(want, "pod-security-running") && !strings.Contains(want, "unschedulable") {
				t.Errorf("%s at %s offends nothing: %s", part[i].Name, level, want)
			}
		}
	}
}

// told is a pod whose program is told much.
func told(name string) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"example.com/note": strings.Repeat("a-setting ", 200)}},
		Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes}, NodeSelector: map[string]string{"no": "node"},
			Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: restricted(), Command: []string{"a-setting"}, Args: []string{"a-setting"}}}},
	}
	c := &pod.Spec.Containers[0]
	for i := range 40 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("A%d", i), Value: "a-setting of some length"})
	}
	for _, name := range []string{"a", "b"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a-setting"}}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/a-setting/" + name})
	}
	return pod
}

// offences are changes of a pod that keeps to every level and is in nobody's way; the first changes nothing.
func offences() []func(*corev1.Pod) {
	yes, no, root := true, false, int64(0)
	unmasked := corev1.UnmaskedProcMount
	on := func(change func(*corev1.Container)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { change(&pod.Spec.Containers[0]) }
	}
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		}
	}
	probe := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1"}}
	probe.TCPSocket.Port.IntVal = 80
	return []func(*corev1.Pod){
		func(*corev1.Pod) {},
		on(func(c *corev1.Container) {
			c.SecurityContext.Privileged, c.SecurityContext.AllowPrivilegeEscalation = &yes, &yes
		}),
		on(func(c *corev1.Container) { c.SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"} }),
		on(func(c *corev1.Container) { c.SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined }),
		on(func(c *corev1.Container) { c.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{User: "u"} }),
		on(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 99, HostPort: 99}} }),
		on(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{ProbeHandler: probe} }),
		on(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1", Port: probe.TCPSocket.Port}}}
		}),
		volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}),
		func(pod *corev1.Pod) { pod.Spec.HostPID = true },
		func(pod *corev1.Pod) { pod.Spec.HostNetwork = true },
		func(pod *corev1.Pod) {
			pod.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}
		},
		func(pod *corev1.Pod) {
			pod.Annotations["container.apparmor.security.beta.kubernetes.io/c"] = "unconfined"
		},
		func(pod *corev1.Pod) {
			pod.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: &yes}
			pod.Spec.HostNetwork = true
		},
		func(pod *corev1.Pod) { // an init container that goes on, as root
			pod.Spec.SecurityContext.RunAsNonRoot = &no
			pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i", SecurityContext: &corev1.SecurityContext{RunAsUser: &root, ProcMount: &unmasked, Privileged: &yes}}}
			pod.Spec.HostUsers = &no
		},
		on(func(c *corev1.Container) {
			c.SecurityContext.Privileged, c.SecurityContext.AllowPrivilegeEscalation = &yes, &yes
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		}),
		func(pod *corev1.Pod) { // keeps what has no such label from the node
			pod.Spec.HostIPC = true
			pod.Labels = map[string]string{"lonely": "yes"}
		},
	}
}
