package jr2_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
)

// crowd is a bare cluster with so many nodes, and pods that run on them.
func crowd(t testing.TB, nodes, pods int) *devcluster.Cluster {
	t.Helper()
	cluster := devcluster.ForTest(t, devcluster.Options{Bare: true, Audit: true, Context: contextName})
	populate(t, cluster, 0, nodes, nodes, 0, pods)
	return cluster
}

// populate adds the nodes and the pods of these numbers, on as many nodes as there are then.
func populate(t testing.TB, cluster *devcluster.Cluster, firstNode, endNode, nodes, firstPod, endPod int) {
	t.Helper()
	config := unlimited(cluster.Config())
	config.ContentType = apiruntime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	var group errgroup.Group
	group.SetLimit(64)
	for i := firstNode; i < endNode; i++ {
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(t.Context(), crowdNode(i), metav1.CreateOptions{})
			return err
		})
	}
	for i := firstPod; i < endPod; i++ {
		group.Go(func() error {
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), crowdPod(i, nodes), metav1.CreateOptions{})
			return err
		})
	}
	must(t, group.Wait())
}

// crowdNode says of itself what a kubelet does, with 50 images.
func crowdNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%04d", i)
	room := corev1.ResourceList{corev1.ResourceCPU: quantity("8"), corev1.ResourceMemory: quantity("32Gi"), corev1.ResourcePods: quantity("110"), corev1.ResourceEphemeralStorage: quantity("200Gi")}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), corev1.LabelInstanceTypeStable: "large",
		}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, NodeInfo: corev1.NodeSystemInfo{
			Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.1.4", OSImage: "Linux", KernelVersion: "6.12.0",
		}},
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		status := corev1.ConditionFalse
		if kind == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Reason: "Kubelet", Message: "kubelet has said so", LastHeartbeatTime: metav1.Now()})
	}
	for j := range 50 {
		ref := fmt.Sprintf("registry.example.com/team/service-%d", j)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{ref + "@sha256:" + strings.Repeat("ab", 32), ref + ":v1.2.3"}, SizeBytes: 123456789})
	}
	return n
}

// crowdPod is a pod as a Deployment of some program makes it.
func crowdPod(i, nodes int) *corev1.Pod {
	sizes := corev1.ResourceList{corev1.ResourceCPU: quantity("250m"), corev1.ResourceMemory: quantity("256Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i), Labels: map[string]string{"app": fmt.Sprintf("app-%d", i%100), "pod-template-hash": "5d4f8c7b9"},
			Annotations: map[string]string{"example.com/checksum": strings.Repeat("c", 64), "example.com/note": strings.Repeat("what somebody wrote down ", 20)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/service-1:v1.2.3", Command: []string{"/bin/service"}, Args: []string{"--config=/etc/service/config.yaml", "--verbose"},
			Resources: corev1.ResourceRequirements{Requests: sizes, Limits: sizes}, Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}},
	}
	if nodes > 0 {
		pod.Spec.NodeName = fmt.Sprintf("node-%04d", i%nodes)
	}
	main := &pod.Spec.Containers[0]
	for j := range 25 {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", j), Value: "a value of some length, such as an address"})
	}
	for _, name := range []string{"config", "keys", "scratch"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/mnt/" + name})
	}
	return pod
}

// crowdSet is a set of 20 Deployments of 3 pods each.
func crowdSet(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	var set []*unstructured.Unstructured
	for i := range 20 {
		three, app := int32(3), map[string]string{"app": fmt.Sprintf("new-%d", i)}
		pod := crowdPod(i, 0)
		pod.Labels = app
		deployment := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: app["app"], Namespace: metav1.NamespaceDefault},
			Spec: appsv1.DeploymentSpec{Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: app}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: pod.Spec}}}
		object, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(deployment)
		must(t, err)
		set = append(set, &unstructured.Unstructured{Object: object})
	}
	return set
}
