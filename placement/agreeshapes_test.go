package placement_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
)

// asks is a pod of the default namespace.
func asks(name, requests string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := asking(requests)
	pod.Name, pod.Namespace = name, metav1.NamespaceDefault
	for _, f := range change {
		f(pod)
	}
	return pod
}

// withImages gives the containers what the API server wants of them beside their shape.
func withImages(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Image = "example.com/app:1"
		}
	}
	return pod
}

func selecting(labels map[string]string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = labels }
}

func tolerating(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = tolerations }
}

func onlyOn(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Affinity = placement.Rules{}.On(node).Affinity }
}

func as(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func spreadBy(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}}}
	}
}

func honoringTaints(p *corev1.Pod) {
	honor := corev1.NodeInclusionPolicyHonor
	p.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
}

func affinityTo(app, key string, apart bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		terms := []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key}}
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		if apart {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
			return
		}
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func inits(containers ...corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.InitContainers = containers }
}

func hostPort(number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: number, HostPort: number}}
	}
}
