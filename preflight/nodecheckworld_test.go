package preflight_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

type checkWorld struct {
	cluster *devcluster.Cluster
	client  kubernetes.Interface
}

func (w checkWorld) nodes(t *testing.T, names ...string) []corev1.Node {
	t.Helper()
	var nodes []corev1.Node
	for _, name := range names {
		node, err := w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		nodes = append(nodes, *node)
	}
	return nodes
}

// namespace is one at a Pod Security level, with the service account that lets pods in.
func (w checkWorld) namespace(t *testing.T, name, level string) string {
	t.Helper()
	makeNamespace(t, w.client, name, map[string]string{"pod-security.kubernetes.io/enforce": level})
	eventually(t, "the namespace has its account", func() bool {
		_, err := w.client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return name
}

// kubelet ends the pods of node checks in a namespace, or in those that checks make for themselves when it is "": a shell of this machine runs
// their scripts.
func (w checkWorld) kubelet(t *testing.T, namespace string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		devcluster.Missing(t, "no busybox on this machine")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "jr2.dev/node-check"})
			if err != nil {
				return
			}
			for i := range pods.Items {
				pod := &pods.Items[i]
				ours := namespace != "" || strings.HasPrefix(pod.Namespace, "jr2-node-check-")
				if ours && pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded {
					w.end(ctx, t, busybox, pod)
				}
			}
		}, 50*time.Millisecond)
	}()
}

func (w checkWorld) end(ctx context.Context, t *testing.T, busybox string, pod *corev1.Pod) {
	container := pod.Spec.Containers[0]
	script, ok := strings.CutPrefix(container.Command[2], "exec >/dev/termination-log 2>&1\n")
	if !ok || container.Command[0] != "sh" {
		t.Errorf("command %q", container.Command)
	}
	args := append([]string{"sh", "-c", script, container.Command[3]}, container.Args...)
	command := exec.CommandContext(ctx, busybox, args...)
	out, err := command.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		t.Errorf("the script: %v: %s", err, out)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Status.Phase = corev1.PodSucceeded
		now.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container.Name, Image: container.Image, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: string(out)}}}}
		_, err = w.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		t.Errorf("end a pod: %v", err)
	}
}

// clean fails when a check left a pod, or a namespace that is not going.
func (w checkWorld) clean(t *testing.T, namespace string) {
	t.Helper()
	pods, err := w.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "jr2.dev/node-check"})
	must(t, err)
	if len(pods.Items) > 0 {
		t.Errorf("the check left pod %s", pods.Items[0].Name)
	}
}

func codes(findings []preflight.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Object+" "+f.Code)
	}
	return all
}

// refusePrivileged is what a policy engine does.
func (w checkWorld) refusePrivileged(t *testing.T, namespace string) {
	t.Helper()
	fail := admissionv1.Fail
	policies := w.client.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Validations: []admissionv1.Validation{{Message: "nobody is privileged here",
				Expression: "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)"}},
		}}, metav1.CreateOptions{})
	must(t, err)
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "guard", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// loadedModule is one that this machine's kernel has.
func loadedModule(t *testing.T) string {
	t.Helper()
	modules, err := os.ReadDir("/sys/module")
	if err != nil || len(modules) == 0 {
		devcluster.Missing(t, "this kernel names no module")
	}
	for _, module := range modules {
		if strings.Contains(module.Name(), "_") {
			return strings.ReplaceAll(module.Name(), "_", "-") // as modprobe takes it too
		}
	}
	return modules[0].Name()
}

// silentAddress has a listener whose queue is full: the kernel drops what comes, as a firewall does.
func silentAddress(t *testing.T, address string, port int) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { syscall.Close(fd) }) //nolint:errcheck // the test ends
	where := &syscall.SockaddrInet4{Port: port}
	copy(where.Addr[:], net.ParseIP(address).To4())
	must(t, syscall.Bind(fd, where))
	must(t, syscall.Listen(fd, 0))
	for range 3 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", address, port), 200*time.Millisecond)
		if err == nil {
			t.Cleanup(func() { c.Close() }) //nolint:errcheck // the test ends
		}
	}
}

// targets are nodes whose addresses answer as their names say.
func targets(t *testing.T) (nodes []corev1.Node, port int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.3:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the test ends
	number := listener.Addr().(*net.TCPAddr).Port
	silentAddress(t, "127.0.0.4", number)
	for name, address := range map[string]string{"refuses": "127.0.0.2", "listens": "127.0.0.3", "silent": "127.0.0.4", "broken": "not-an-address", "nameless": ""} {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if address != "" {
			node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}}
		}
		nodes = append(nodes, node)
	}
	return nodes, int32(number)
}
