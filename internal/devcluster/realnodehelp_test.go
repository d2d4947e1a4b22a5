package devcluster_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
)

// pod is a pod for the node that runs a script with a shell.
func (n *realNodes) pod(name string, node *devcluster.RealNode, script string) *corev1.Pod {
	now := int64(0)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelHostname: node.Name},
		Tolerations:                   []corev1.Toleration{{Key: "small", Operator: corev1.TolerationOpExists}},
		TerminationGracePeriodSeconds: &now,
		Containers:                    []corev1.Container{{Name: "main", Image: n.image, Command: []string{"sh", "-c", script}}},
	}}
}

func sized(pod *corev1.Pod, memory string) *corev1.Pod {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse(memory)}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: size, Limits: size}
	return pod
}

// waitPod waits until the pod is as the condition wants it.
func (n *realNodes) waitPod(t *testing.T, name string, what string, condition func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, func(ctx context.Context) error {
		var err error
		pod, err = n.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && !condition(pod) {
			err = fmt.Errorf("%s is not %s: %+v", name, what, pod.Status)
		}
		return err
	})
	return pod
}

func running(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func (n *realNodes) waitLog(t *testing.T, name, want string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		log, err := n.client.CoreV1().Pods("default").GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err == nil && !strings.Contains(string(log), want) {
			err = fmt.Errorf("the log of %s is %q", name, log)
		}
		return err
	})
}

func (n *realNodes) deletePod(t *testing.T, name string) {
	t.Helper()
	if err := n.client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (n *realNodes) waitNode(t *testing.T, name string, want corev1.ConditionStatus) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		node, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == want {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", node.Status.Conditions)
	})
}

// execIn runs a command in the pod's container and returns its output, between the bytes of the protocol.
func execIn(t *testing.T, config *rest.Config, pod string, command ...string) string {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	query := url.Values{"command": command, "stdout": {"true"}, "stderr": {"true"}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/api/v1/namespaces/default/pods/"+pod+"/exec?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol": "v5.channel.k8s.io",
	} {
		request.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	output, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("exec: %s %v %q", response.Status, err, output)
	}
	return string(output)
}

// processes are those of this machine whose command line starts with the text.
func processes(t *testing.T, text string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && strings.HasPrefix(string(line), text) {
			found = append(found, entry.Name())
		}
	}
	return found
}
