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

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// Variables that tell TestProbeVictim from which cluster to ask, and what: models, or a node from a namespace.
const (
	victimVariable  = "JR2_TEST_PROBE_VICTIM"
	victimNamespace = "JR2_TEST_PROBE_VICTIM_NAMESPACE"
	victimOf        = "JR2_TEST_PROBE_VICTIM_OF"
)

// TestProbeVictim is the process that the tests of this file kill. By itself it does nothing.
func TestProbeVictim(t *testing.T) {
	kubeconfig := os.Getenv(victimVariable)
	if kubeconfig == "" {
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	config.UserAgent = victimVariable + os.Getenv(victimNamespace)
	client := clientFor(t, config)
	if os.Getenv(victimOf) == "models" {
		_, err = probesOf(client, os.Getenv(victimNamespace)).Models(t.Context(), []preflight.Model{own("http://127.0.0.1:1", "a"), own("http://127.0.0.1:1", "b")})
	} else {
		node, gone := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		must(t, gone)
		_, err = preflight.NodeChecks{Client: client.CoreV1(), Namespace: os.Getenv(victimNamespace)}.Modules(t.Context(), []corev1.Node{*node}, "nfsd")
	}
	t.Errorf("nobody killed this process: %v", err)
}

// kill starts a process that checks, and kills it as soon as its pods are under way. It returns what that process wrote.
func (w checkWorld) kill(t *testing.T, of, namespace string, underway func() bool) []devcluster.AuditEvent {
	t.Helper()
	mark, err := w.cluster.AuditMark()
	must(t, err)
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProbeVictim$")
	victim.Env = append(os.Environ(), victimVariable+"="+w.cluster.Kubeconfig(), victimOf+"="+of, victimNamespace+"="+namespace)
	must(t, victim.Start())
	eventually(t, "its pods and what they read are there", underway)
	must(t, victim.Process.Kill())
	if err := victim.Wait(); err == nil {
		t.Fatal("the victim ended by itself")
	}
	all, _, err := w.cluster.AuditSince(t.Context(), mark)
	must(t, err)
	return slices.DeleteFunc(storing(all), func(e devcluster.AuditEvent) bool { return e.UserAgent != victimVariable+namespace })
}

// testModelKilled: a run that is killed with its pods under way leaves them, and the next run removes them and what they read. Of all that the
// two wrote, nothing stays, and nothing was not announced.
func testModelKilled(t *testing.T, w checkWorld) {
	probes := w.probes(t, "model-killed")
	marked := metav1.ListOptions{LabelSelector: "jr2.dev/model-probe"}
	killed := w.kill(t, "models", probes.Namespace, func() bool {
		secrets, err := w.client.CoreV1().Secrets(probes.Namespace).List(t.Context(), marked)
		must(t, err)
		return len(secrets.Items) == 2
	})
	pods, err := w.client.CoreV1().Pods(probes.Namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(pods.Items) != 2 || slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.ActiveDeadlineSeconds == nil }) {
		t.Fatalf("%d pods are left, or one without an end", len(pods.Items))
	}
	if len(left(killed, killed)) != 6 {
		t.Errorf("the victim wrote %v", killed)
	}
	client, witness := witnessed(t, w.cluster)
	probes.Client, probes.Timeout = client.CoreV1(), time.Second
	_, err = probes.Models(t.Context(), []preflight.Model{own("http://127.0.0.1:1", "a")})
	must(t, err)
	w.nothingLeft(t, probes.Namespace)
	next, all := wrote(t, witness)
	writes := append(killed, next...)
	announced(t, writes, modelProbesWrite(), probes.Namespace)
	if stay := left(writes, all); len(stay) > 0 {
		t.Errorf("left are %q", stay)
	}
}

// testNodesKilled: so it is with node checks, in a namespace that is given and in their own.
func testNodesKilled(t *testing.T, w checkWorld) {
	given := w.namespace(t, "node-killed", "privileged")
	marked := metav1.ListOptions{LabelSelector: "jr2.dev/node-check"}
	for _, namespace := range []string{given, ""} {
		home := namespace
		if namespace == "" {
			home = "jr2-node-check-"
		}
		there := func() []corev1.Pod {
			pods, err := w.client.CoreV1().Pods(namespace).List(t.Context(), marked)
			must(t, err)
			return pods.Items
		}
		killed := w.kill(t, "nodes", namespace, func() bool { return len(there()) > 0 })
		if pods := there(); len(pods) != 1 || pods[0].Spec.ActiveDeadlineSeconds == nil {
			t.Fatalf("%d pods are left, or one without an end", len(pods))
		}
		if len(left(killed, killed)) == 0 {
			t.Errorf("%q: the victim wrote %v", namespace, killed)
		}
		client, witness := witnessed(t, w.cluster)
		_, err := preflight.NodeChecks{Client: client.CoreV1(), Namespace: namespace, Timeout: time.Second}.Modules(t.Context(), w.nodes(t, "n1"), "nfsd")
		must(t, err)
		eventually(t, "nothing is left", func() bool {
			namespaces, err := w.client.CoreV1().Namespaces().List(t.Context(), marked)
			must(t, err)
			return len(there())+len(namespaces.Items) == 0
		})
		next, all := wrote(t, witness)
		writes := append(killed, next...)
		announced(t, writes, nodeChecksWrite(namespace), home)
		if stay := left(writes, all); len(stay) > 0 {
			t.Errorf("%q: left are %q", namespace, stay)
		}
	}
}
