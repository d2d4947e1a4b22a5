package preflight_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"jr2.dev/jr2/preflight"
)

// victimVariable tells TestModelProbeVictim which cluster to ask from.
const victimVariable = "JR2_TEST_MODEL_PROBE_VICTIM"

const victimNamespace = "model-killed"

// TestModelProbeVictim is the process that testModelKilled kills. By itself it does nothing.
func TestModelProbeVictim(t *testing.T) {
	kubeconfig := os.Getenv(victimVariable)
	if kubeconfig == "" {
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	_, err = probesOf(clientFor(t, config), victimNamespace).Models(t.Context(), []preflight.Model{own("http://127.0.0.1:1", "a"), own("http://127.0.0.1:1", "b")})
	t.Errorf("nobody killed this process: %v", err)
}

// testModelKilled: a run that is killed with its pods under way leaves them, and the next run removes them and what they read.
func testModelKilled(t *testing.T, w checkWorld) {
	probes := w.probes(t, victimNamespace)
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestModelProbeVictim$")
	victim.Env = append(os.Environ(), victimVariable+"="+w.cluster.Kubeconfig())
	must(t, victim.Start())
	eventually(t, "its pods and what they read are there", func() bool {
		secrets, err := w.client.CoreV1().Secrets(victimNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "jr2.dev/model-probe"})
		must(t, err)
		return len(secrets.Items) == 2
	})
	must(t, victim.Process.Kill())
	if err := victim.Wait(); err == nil {
		t.Fatal("the victim ended by itself")
	}
	pods, err := w.client.CoreV1().Pods(victimNamespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(pods.Items) != 2 || slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.ActiveDeadlineSeconds == nil }) {
		t.Fatalf("%d pods are left, or one without an end", len(pods.Items))
	}
	probes.Timeout = time.Second
	_, err = probes.Models(t.Context(), []preflight.Model{own("http://127.0.0.1:1", "a")})
	must(t, err)
	w.nothingLeft(t, victimNamespace)
}
