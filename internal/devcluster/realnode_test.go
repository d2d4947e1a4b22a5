package devcluster_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
)

// realNodes are what the tests below share.
type realNodes struct {
	cluster *devcluster.Cluster
	client  kubernetes.Interface
	small   *devcluster.RealNode
	other   *devcluster.RealNode
	pulls   *devcluster.Registry
	// image is busybox, in a registry that asks for nothing.
	image string
}

// Two nodes for all that can share them. The order matters at the end: nodes that are away disturb what others look at.
func TestRealNodes(t *testing.T) {
	t.Parallel()
	if err := devcluster.CanRealNode(); err != nil {
		devcluster.Missing(t, err.Error())
	}
	n := &realNodes{
		cluster: devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}, NodeGrace: 8 * time.Second}),
		pulls:   startRegistry(t, devcluster.RegistryOptions{}),
	}
	n.client = clientFor(t, n.cluster.Config())
	var err error
	if n.image, err = n.pulls.PushBusybox(t.Context(), "base/busybox:1", "amd64"); err != nil {
		devcluster.Missing(t, err.Error())
	}
	n.small = devcluster.RealNodeForTest(t, n.cluster, devcluster.RealNodeOptions{
		Name:   "small",
		Labels: map[string]string{"pool": "sandboxes"},
		Taints: []corev1.Taint{{Key: "small", Effect: corev1.TaintEffectNoSchedule}},
		Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("300Mi"), corev1.ResourcePods: resource.MustParse("7"),
		},
		Registries: []*devcluster.Registry{n.pulls},
	})
	n.other = devcluster.RealNodeForTest(t, n.cluster, devcluster.RealNodeOptions{
		Name: "other", Registries: []*devcluster.Registry{n.pulls}, Kubelet: map[string]any{"maxPods": 9},
	})
	t.Run("allocatable", n.testAllocatable)
	t.Run("guaranteed", n.testGuaranteed)
	t.Run("exit", n.testExit)
	t.Run("pull secret", n.testPullSecret)
	t.Run("network", n.testNetwork)
	t.Run("no kubelet", n.testNoKubelet)
	t.Run("power cut", n.testPowerCut)
	t.Run("closed", n.testClosed)
}

func (n *realNodes) testAllocatable(t *testing.T) {
	node, err := n.client.CoreV1().Nodes().Get(t.Context(), "small", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := node.Status.Allocatable
	if have.Cpu().String() != "1" || have.Memory().String() != "300Mi" || have.Pods().String() != "7" {
		t.Errorf("allocatable is %v", have)
	}
	if node.Labels["pool"] != "sandboxes" || node.Labels[corev1.LabelArchStable] == "" || len(node.Spec.Taints) != 1 {
		t.Errorf("the node has %v, %v", node.Labels, node.Spec.Taints)
	}
	other, err := n.client.CoreV1().Nodes().Get(t.Context(), "other", metav1.GetOptions{})
	if err != nil || other.Status.Allocatable.Pods().String() != "9" {
		t.Errorf("the other's is %v: %v", other.Status.Allocatable, err)
	}
	_, err = n.cluster.StartRealNode(t.Context(), devcluster.RealNodeOptions{
		Name: "huge", Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Pi")}})
	if err == nil || !strings.Contains(err.Error(), "allocatable memory is 1Pi, and this machine has") {
		t.Errorf("more than there is: %v", err)
	}
}

func (n *realNodes) testGuaranteed(t *testing.T) {
	// What tells the process from those of other tests.
	mark := fmt.Sprint(86400 + time.Now().UnixNano()%1e9)
	pod := sized(n.pod("guaranteed", n.small, "ls /image/bin; echo from stderr >&2; sleep "+mark), "200Mi")
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "image", MountPath: "/image"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: n.image}}}}
	runPod(t, n.client, pod)
	ran := n.waitPod(t, "guaranteed", "running", running)
	if ran.Status.QOSClass != corev1.PodQOSGuaranteed || !strings.HasPrefix(ran.Status.PodIP, "10.244.") || ran.Status.HostIP != n.small.Address {
		t.Errorf("it runs as %+v", ran.Status)
	}
	n.waitLog(t, "guaranteed", "busybox\n")
	n.waitLog(t, "guaranteed", "from stderr\n")
	if out := execIn(t, n.cluster.Config(), "guaranteed", "cat", "/etc/hostname"); !strings.Contains(out, "guaranteed") {
		t.Errorf("exec says %q", out)
	}
	// The node is full.
	runPod(t, n.client, sized(n.pod("waits", n.small, "sleep 86400"), "200Mi"))
	n.waitPod(t, "waits", "refused", func(pod *corev1.Pod) bool {
		return len(pod.Status.Conditions) > 0 && strings.Contains(pod.Status.Conditions[0].Message, "Insufficient memory")
	})
	if len(processes(t, "sleep\x00"+mark)) != 1 {
		t.Error("its process is not on this machine")
	}
	n.deletePod(t, "guaranteed")
	eventually(t, func(context.Context) error {
		if left := processes(t, "sleep\x00"+mark); len(left) > 0 {
			return fmt.Errorf("%v are still running", left)
		}
		return nil
	})
	n.waitPod(t, "waits", "running", running)
	n.deletePod(t, "waits")
}

func (n *realNodes) testExit(t *testing.T) {
	pod := n.pod("exits", n.other, "echo last words; exit 3")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	runPod(t, n.client, pod)
	pod = n.waitPod(t, "exits", "failed", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("it ended as %+v", pod.Status.ContainerStatuses)
	}
	n.waitLog(t, "exits", "last words\n")
	hungry := n.pod("hungry", n.other, "tail /dev/zero")
	hungry.Spec.RestartPolicy = corev1.RestartPolicyNever
	runPod(t, n.client, sized(hungry, "16Mi"))
	hungry = n.waitPod(t, "hungry", "failed", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if end := hungry.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "OOMKilled" {
		t.Errorf("it ended as %+v", hungry.Status.ContainerStatuses)
	}
}

// A registry that starts after the node, with its own authority and credentials.
func (n *realNodes) testPullSecret(t *testing.T) {
	registry := startRegistry(t, devcluster.RegistryOptions{TLS: true, User: "me", Password: "secret"})
	if err := n.other.TrustRegistry(registry); err != nil {
		t.Fatal(err)
	}
	image, err := registry.PushBusybox(t.Context(), "private:1", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := registry.WriteDockerConfig(dir); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(dir + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: config}}
	if _, err := n.client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, secrets := range map[string][]corev1.LocalObjectReference{"refused": nil, "pulled": {{Name: "pull"}}} {
		pod := n.pod(name, n.other, "sleep 86400")
		pod.Spec.Containers[0].Image = image
		pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		pod.Spec.ImagePullSecrets = secrets
		runPod(t, n.client, pod)
	}
	n.waitPod(t, "pulled", "running", running)
	n.waitPod(t, "refused", "refused", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff"}, s[0].State.Waiting.Reason)
	})
	n.deletePod(t, "pulled")
	n.deletePod(t, "refused")
}

// Pods reach pods of the other node, its own network and the API server; until the cable is pulled.
func (n *realNodes) testNetwork(t *testing.T) {
	host := n.pod("host", n.other, "busybox nc -ll -p 7000 -e echo from the host")
	host.Spec.HostNetwork = true
	probed := n.pod("server", n.other, "busybox nc -ll -p 7000 -e echo from a pod")
	probed.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7000)}}, PeriodSeconds: 1}
	runPod(t, n.client, probed)
	runPod(t, n.client, host)
	runPod(t, n.client, n.pod("client", n.small, "sleep 86400"))
	server := n.waitPod(t, "server", "ready", func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
	})
	n.waitPod(t, "host", "running", running)
	n.waitPod(t, "client", "running", running)
	ask := func(ip, port string) string {
		return execIn(t, n.cluster.Config(), "client", "sh", "-c", fmt.Sprintf("busybox nc -w 2 %s %s </dev/null; echo ended with $?", ip, port))
	}
	says := func(ip, port, want string) {
		t.Helper()
		eventually(t, func(context.Context) error {
			if out := ask(ip, port); !strings.Contains(out, want) {
				return fmt.Errorf("%s:%s says %q", ip, port, out)
			}
			return nil
		})
	}
	says(server.Status.PodIP, "7000", "from a pod")
	says(n.other.Address, "7000", "from the host")
	says("$KUBERNETES_SERVICE_HOST", "443", "ended with 0")
	says(n.other.Address, "7001", "refused")
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from the test") })) //nolint:errcheck // seen below
	defer here.Close()
	exposed, err := n.small.Expose(here.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if out := execIn(t, n.cluster.Config(), "client", "busybox", "wget", "-qO-", "http://"+exposed); !strings.Contains(out, "from the test") {
		t.Errorf("the test's own server says %q", out)
	}
	if err := n.other.Unplug(t.Context()); err != nil {
		t.Fatal(err)
	}
	says(server.Status.PodIP, "7000", "timed out")
	if err := n.other.Plug(t.Context()); err != nil {
		t.Fatal(err)
	}
	says(server.Status.PodIP, "7000", "from a pod")
}

// Pods do not notice that their kubelet is away.
func (n *realNodes) testNoKubelet(t *testing.T) {
	before := n.waitPod(t, "client", "running", running).Status.ContainerStatuses[0].ContainerID
	n.small.KillKubelet()
	n.waitNode(t, "small", corev1.ConditionUnknown)
	if err := n.small.StartKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.waitNode(t, "small", corev1.ConditionTrue)
	// Running and ready again in the words of the new kubelet.
	after := n.waitPod(t, "client", "ready", func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].Ready })
	if id := after.Status.ContainerStatuses[0].ContainerID; id != before {
		t.Errorf("the container was %s and is %s", before, id)
	}
}

// Pods start again, from images that are there.
func (n *realNodes) testPowerCut(t *testing.T) {
	n.small.PowerOff()
	if err := n.small.StartKubelet(t.Context()); err == nil {
		t.Error("a kubelet without power")
	}
	pulls := n.pulls.Requests(http.MethodGet)
	if err := n.small.PowerOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.waitPod(t, "client", "started again", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses[0]
		return s.Ready && s.RestartCount == 1
	})
	if again := n.pulls.Requests(http.MethodGet) - pulls; again != 0 {
		t.Errorf("%d requests to the registry", again)
	}
}

func (n *realNodes) testClosed(t *testing.T) {
	if err := n.other.Close(); err != nil {
		t.Fatal(err)
	}
	nodes, err := n.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Errorf("%d nodes are left: %v", len(nodes.Items), err)
	}
	if err := n.other.PowerOn(t.Context()); err == nil {
		t.Error("a closed node starts")
	}
	if err := n.other.Close(); err != nil {
		t.Error(err)
	}
}

// A cluster that is kept keeps its nodes' images and pods.
func TestRealNodeIsKept(t *testing.T) {
	t.Parallel()
	options := devcluster.Options{Dir: filepath.Join(t.TempDir(), "kept"), Nodes: []devcluster.Node{}}
	cluster, err := devcluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	// Where the node can't be had, the test ends here.
	t.Cleanup(func() { cluster.Close() }) //nolint:errcheck // closed below
	node := devcluster.RealNodeForTest(t, cluster, devcluster.RealNodeOptions{})
	image, err := devcluster.BusyboxImage(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.LoadImage(t.Context(), "localhost/loaded:1", image); err != nil {
		t.Fatal(err)
	}
	pod := podSpec("localhost/loaded:1").Spec
	pod.NodeName, pod.Containers[0].Command = node.Name, []string{"sleep", "86400"}
	runs := &realNodes{client: clientFor(t, cluster.Config())}
	runPod(t, runs.client, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Spec: pod})
	runs.waitPod(t, "kept", "running", running)
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.StartRealNode(t.Context(), devcluster.RealNodeOptions{}); err == nil {
		t.Error("a closed cluster starts a node")
	}
	again := devcluster.ForTest(t, options)
	devcluster.RealNodeForTest(t, again, devcluster.RealNodeOptions{})
	runs.waitPod(t, "kept", "started again", func(pod *corev1.Pod) bool { return running(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1 })
}
