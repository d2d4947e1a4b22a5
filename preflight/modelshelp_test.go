package preflight_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// probes ask from a namespace of their own.
func (w checkWorld) probes(t *testing.T, name string, change ...func(*corev1.Pod)) preflight.ModelProbes {
	t.Helper()
	return probesOf(w.client, w.namespace(t, name, "restricted"), change...)
}

func probesOf(client kubernetes.Interface, namespace string, change ...func(*corev1.Pod)) preflight.ModelProbes {
	return preflight.ModelProbes{
		Client: client.CoreV1(), Namespace: namespace, Timeout: time.Minute,
		Pod: func(name string) (*corev1.Pod, []runtime.Object, error) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "harness", Image: "harness:1", SecurityContext: restricted(),
				Env: []corev1.EnvVar{{Name: "JR2_PROVIDER_API_KEY", Value: "jr2-held-JR2_PROVIDER_API_KEY"}}}}}}
			for _, c := range change {
				c(pod)
			}
			return pod, []runtime.Object{
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-config"}, Data: map[string]string{"a": "b"}},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-secret"}, Data: map[string][]byte{"a": []byte("b")}},
			}, nil
		},
	}
}

func restricted() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// own is a model of the configuration's own provider.
func own(base, id string) preflight.Model {
	return preflight.Model{Name: "local/" + id, ID: id, API: "openai-completions", BaseURL: base, Keys: []string{"JR2_PROVIDER_API_KEY"}, Own: true}
}

// closed is where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	return "http://" + listener.Addr().String() + "/v1"
}

// runsProbes ends the pods of model probes in a namespace as their script does.
func (w checkWorld) runsProbes(t *testing.T, namespace string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		devcluster.Missing(t, "no node on this machine")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		ended := map[string]bool{}
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "jr2.dev/model-probe"})
			if err != nil {
				return
			}
			for i := range pods.Items {
				if pod := &pods.Items[i]; pod.Spec.NodeName != "" && !ended[pod.Name] {
					ended[pod.Name] = true
					w.runProbe(ctx, t, node, filepath.Join(dir, pod.Name), pod)
				}
			}
		}, 50*time.Millisecond)
	}()
}

func (w checkWorld) runProbe(ctx context.Context, t *testing.T, node, file string, pod *corev1.Pod) {
	container := pod.Spec.Containers[0]
	if container.Command[0] != "/opt/jr2/bin/node" || container.Command[1] != "-e" {
		t.Errorf("command %q", container.Command[:2])
	}
	command := exec.CommandContext(ctx, node, "-e", container.Command[2])
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, env := range container.Env {
		value := env.Value
		if env.Name == "JR2_MODEL_PROBE" {
			value = hurried(t, value, file)
		}
		command.Env = append(command.Env, env.Name+"="+value)
	}
	if out, err := command.CombinedOutput(); err != nil && ctx.Err() == nil {
		t.Errorf("the script: %v: %s", err, out)
	}
	message, err := os.ReadFile(file)
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if len(message) > 4096 {
		t.Errorf("the answer has %d bytes", len(message))
	}
	w.endProbe(ctx, t, pod, string(message))
}

// hurried is a question that leaves its answer in a file of the test's, and waits less.
func hurried(t *testing.T, question, file string) string {
	var fields map[string]any
	if err := json.Unmarshal([]byte(question), &fields); err != nil {
		t.Error(err)
	}
	fields["answer"], fields["pause"] = file, 10
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}

func (w checkWorld) endProbe(ctx context.Context, t *testing.T, pod *corev1.Pod, message string) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Status.Phase = corev1.PodSucceeded
		now.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "harness", Image: "harness:1", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: message}}}}
		_, err = w.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		t.Errorf("end a pod: %v", err)
	}
}

// nothingLeft waits until the cluster has removed what went with the pods; the pods themselves are gone when the probes return.
func (w checkWorld) nothingLeft(t *testing.T, namespace string) {
	t.Helper()
	marked := metav1.ListOptions{LabelSelector: "jr2.dev/model-probe"}
	pods, err := w.client.CoreV1().Pods(namespace).List(t.Context(), marked)
	must(t, err)
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			t.Errorf("pod %s is left", pod.Name)
		}
	}
	eventually(t, "what the pods read goes with them", func() bool {
		secrets, err := w.client.CoreV1().Secrets(namespace).List(t.Context(), marked)
		must(t, err)
		configs, err := w.client.CoreV1().ConfigMaps(namespace).List(t.Context(), marked)
		must(t, err)
		return len(secrets.Items)+len(configs.Items) == 0
	})
}
