package preflight_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/holder"
	"jr2.dev/jr2/preflight"
)

// TestNodeChecks asks a real API server and scheduler. The nodes are simulated, so a kubelet of the test's own ends the pods: it runs their scripts
// in a real shell on this machine.
func TestNodeChecks(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{
		Nodes: []devcluster.Node{
			{Name: "n1"}, {Name: "n2", Unschedulable: true, Taints: []corev1.Taint{{Key: "pool", Value: "x", Effect: corev1.TaintEffectNoSchedule}}},
			{Name: "away", NotReady: true}, {Name: "full", Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		},
		Users: []devcluster.User{{Name: "reader", ClusterRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "namespaces"}, Verbs: []string{"get", "list"}}}}},
	})
	config := cluster.Config()
	config.QPS = -1
	world := checkWorld{cluster: cluster, client: clientFor(t, config)}
	for name, test := range map[string]func(*testing.T, checkWorld){
		"privileged": testPrivileged, "modules": testModules, "ports": testPorts, "mount": testMount, "nodes that can't": testUnchecked,
		"leftovers": testLeftovers, "cut off": testCutOff, "no rights": testNoRights, "no shell": testTroubledPods, "no namespace": testNoNamespace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, world)
		})
	}
}

func testPrivileged(t *testing.T, w checkWorld) {
	checks := preflight.NodeChecks{Client: w.client.CoreV1()}
	ask := func(namespace string) []preflight.Finding {
		t.Helper()
		checks.Namespace = namespace
		findings, err := checks.Privileged(t.Context())
		must(t, err)
		return findings
	}
	if findings := ask(""); findings != nil { // in a namespace that is made for it
		t.Errorf("got %+v", findings)
	}
	if findings := ask(w.namespace(t, "privileged", "privileged")); findings != nil {
		t.Errorf("got %+v", findings)
	}
	findings := ask(w.namespace(t, "baseline", "baseline"))
	if len(findings) != 1 || findings[0].Severity != preflight.Warn || !strings.Contains(findings[0].Message, "namespace baseline is not at the privileged Pod Security level") {
		t.Fatalf("got %+v", findings)
	}
	w.namespace(t, "guarded", "privileged")
	w.refusePrivileged(t, "guarded")
	eventually(t, "the policy holds", func() bool { findings = ask("guarded"); return len(findings) > 0 })
	t.Log(findings[0].Message)
	if findings[0].Code != preflight.CodePrivilegedPods || !strings.Contains(findings[0].Message, "an admission controller blocks privileged pods") || !strings.Contains(findings[0].Message, "nobody is privileged here") {
		t.Errorf("got %+v", findings)
	}
	// A limit that minds every pod says nothing about privilege.
	w.namespace(t, "limited", "privileged")
	limits := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{"memory": resource.MustParse("1Gi")}, Max: corev1.ResourceList{"memory": resource.MustParse("2Gi")}}
	_, err := w.client.CoreV1().LimitRanges("limited").Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: limits.Type, Max: corev1.ResourceList{"memory": resource.MustParse("1Mi")}, Default: corev1.ResourceList{"memory": resource.MustParse("1Mi")}}, {Type: corev1.LimitTypePod, Min: limits.Min}}}}, metav1.CreateOptions{})
	must(t, err)
	checks.Namespace = "limited"
	eventually(t, "the limit holds", func() bool {
		findings, err = checks.Privileged(t.Context())
		return err != nil || findings != nil
	})
	if err == nil || findings != nil {
		t.Errorf("got %+v, %v", findings, err)
	}
}

func testModules(t *testing.T, w checkWorld) {
	namespace, there := w.namespace(t, "modules", "privileged"), loadedModule(t)
	w.kubelet(t, namespace)
	checks := preflight.NodeChecks{Client: w.client.CoreV1(), Namespace: namespace}
	findings, err := checks.Modules(t.Context(), w.nodes(t, "n1", "n2"), there, "jr2_no_such_module", "nfsd-x")
	must(t, err)
	want := []string{"Node n1 kernel-module", "Node n1 kernel-module", "Node n2 kernel-module", "Node n2 kernel-module"}
	if !slices.Equal(codes(findings), want) {
		t.Fatalf("got %+v", findings)
	}
	t.Log(findings[0].Message)
	if !strings.HasPrefix(findings[0].Message, "the kernel module jr2_no_such_module does not load on node n1: ") || !strings.Contains(findings[0].Message, "chroot") {
		t.Errorf("got %q", findings[0].Message)
	}
	w.clean(t, namespace)
	for _, bad := range []string{"-r", "", "a b", "a;b"} {
		if _, err := checks.Modules(t.Context(), nil, bad); err == nil {
			t.Errorf("%q is taken for a module", bad)
		}
	}
	if findings, err := checks.Modules(t.Context(), nil); findings != nil || err != nil {
		t.Errorf("nothing to ask: %v, %v", findings, err)
	}
}

func testPorts(t *testing.T, w checkWorld) {
	namespace := w.namespace(t, "ports", "privileged")
	w.kubelet(t, namespace)
	to, port := targets(t)
	checks := preflight.NodeChecks{Client: w.client.CoreV1(), Namespace: namespace}
	findings, err := checks.Ports(t.Context(), w.nodes(t, "n1"), to, port)
	must(t, err)
	got := map[string]string{}
	for _, finding := range findings {
		t.Log(finding.Message)
		got[finding.Code] += finding.Message
	}
	silent := fmt.Sprintf("node n1 cannot reach node silent (127.0.0.4) on TCP port %d: nothing answered within 3 s, so a firewall blocks it — open TCP port %d from node n1 to node silent", port, port)
	if len(findings) != 3 || !strings.Contains(got[preflight.CodeNodePort], silent) || !strings.Contains(got[preflight.CodeNodePort], "reach node broken (not-an-address)") ||
		got[preflight.CodeNodeUnchecked] != "node nameless was not asked: it has no internal address" {
		t.Errorf("got %+v", findings)
	}
	w.clean(t, namespace)
	if _, err := checks.Ports(t.Context(), nil, nil, 70000); err == nil {
		t.Error("70000 is taken for a port")
	}
}

// testMount makes all three checks in a namespace of their own, which goes.
func testMount(t *testing.T, w checkWorld) {
	w.kubelet(t, "")
	checks := preflight.NodeChecks{Client: w.client.CoreV1()}
	sandboxes, port := targets(t)
	sandboxes = slices.DeleteFunc(sandboxes, func(n corev1.Node) bool { return n.Name != "silent" })
	findings, err := checks.Mount(t.Context(), preflight.MountCheck{Agents: w.nodes(t, "away", "n1", "n2"), Sandboxes: sandboxes, Port: port})
	must(t, err)
	for _, finding := range findings {
		t.Log(finding.Message)
		if finding.Severity == preflight.Warn && !strings.HasSuffix(finding.Message, "leave the mount off, and Sandboxes keep using the workspace volume") {
			t.Errorf("got %q", finding.Message)
		}
	}
	// The first agents' node that is ready is asked. The Sandbox node is none of the cluster's, which the scheduler says.
	if want := []string{"Node n1 kernel-module", "Node n1 kernel-module", "Node silent node-unchecked", "Node n1 node-port"}; !slices.Equal(codes(findings), want) {
		t.Errorf("got %v", codes(findings))
	}
	eventually(t, "the namespaces of the checks are gone", func() bool {
		namespaces, err := w.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "jr2.dev/node-check"})
		must(t, err)
		return !slices.ContainsFunc(namespaces.Items, func(n corev1.Namespace) bool { return n.Annotations["jr2.dev/node-check-holder"] == "" })
	})
}

// testUnchecked: a node that can't run the pod is named with the scheduler's words, at once.
func testUnchecked(t *testing.T, w checkWorld) {
	namespace := w.namespace(t, "unchecked", "privileged")
	w.kubelet(t, namespace)
	checks := preflight.NodeChecks{Client: w.client.CoreV1(), Namespace: namespace}
	begun := time.Now()
	findings, err := checks.Modules(t.Context(), w.nodes(t, "away", "full"), "nfsd")
	must(t, err)
	if len(findings) != 2 || time.Since(begun) > time.Minute {
		t.Fatalf("got %+v after %s", findings, time.Since(begun))
	}
	for i, words := range []string{"untolerated taint", "Too many pods"} {
		t.Log(findings[i].Message)
		if findings[i].Severity != preflight.Note || findings[i].Code != preflight.CodeNodeUnchecked || !strings.Contains(findings[i].Message, words) {
			t.Errorf("got %+v", findings[i])
		}
	}
	w.clean(t, namespace)
}

// testLeftovers: what a killed check left goes with the next, and what a living one has stays.
func testLeftovers(t *testing.T, w checkWorld) {
	namespace := w.namespace(t, "leftovers", "privileged")
	self := holder.Self()
	dead := self[:strings.LastIndex(self, ":")+1] + "1)" // this process id, and another process
	if !holder.Gone(dead) {
		devcluster.Missing(t, "this machine does not tell processes apart")
	}
	pod := func(name, holder string) {
		t.Helper()
		_, err := w.client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"jr2.dev/node-check": "x"}, Annotations: map[string]string{"jr2.dev/node-check-holder": holder}},
			Spec:       corev1.PodSpec{NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	pod("dead", dead)
	pod("living", self)
	space := func(name, holder string) {
		t.Helper()
		_, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"jr2.dev/node-check": "x"}, Annotations: map[string]string{"jr2.dev/node-check-holder": holder}}}, metav1.CreateOptions{})
		must(t, err)
	}
	space("left-dead", dead)
	space("left-living", self)
	for _, in := range []string{namespace, ""} {
		if _, err := (preflight.NodeChecks{Client: w.client.CoreV1(), Namespace: in}).Privileged(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pods, err := w.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(pods.Items) != 1 || pods.Items[0].Name != "living" {
		t.Errorf("%d pods are left", len(pods.Items))
	}
	eventually(t, "the namespace that was left behind goes", func() bool {
		left, err := w.client.CoreV1().Namespaces().Get(t.Context(), "left-dead", metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && left.DeletionTimestamp != nil
	})
	living, err := w.client.CoreV1().Namespaces().Get(t.Context(), "left-living", metav1.GetOptions{})
	must(t, err)
	if living.DeletionTimestamp != nil {
		t.Error("the namespace of a check that runs was removed")
	}
	must(t, w.client.CoreV1().Namespaces().Delete(t.Context(), "left-living", metav1.DeleteOptions{}))
}

// testCutOff: nobody ends the pods; the context does, or the time that each has. Nothing stays.
func testCutOff(t *testing.T, w checkWorld) {
	namespace := w.namespace(t, "cut-off", "privileged")
	checks := preflight.NodeChecks{Client: w.client.CoreV1(), Namespace: namespace}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := fmt.Errorf("enough")
	go func() {
		wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) { //nolint:errcheck // the test's context ended
			pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(pods.Items) == 2, nil
		})
		cancel(enough)
	}()
	if findings, err := checks.Modules(ctx, w.nodes(t, "n1", "n2"), "nfsd"); err == nil || len(findings) > 0 {
		t.Errorf("got %v, %v", findings, err)
	}
	w.clean(t, namespace)
	checks.Timeout = 2 * time.Second
	findings, err := checks.Modules(t.Context(), w.nodes(t, "n1"), "nfsd")
	must(t, err)
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "its pod did not end within 2s") {
		t.Errorf("got %+v", findings)
	}
	w.clean(t, namespace)
}

func testNoRights(t *testing.T, w checkWorld) {
	config, err := w.cluster.ConfigFor("reader")
	must(t, err)
	reader := clientFor(t, config)
	for _, namespace := range []string{"", "default"} {
		checks := preflight.NodeChecks{Client: reader.CoreV1(), Namespace: namespace}
		if findings, err := checks.Privileged(t.Context()); !apierrors.IsForbidden(err) || findings != nil {
			t.Errorf("got %v, %v", findings, err)
		}
		if findings, err := checks.Modules(t.Context(), w.nodes(t, "n1"), "nfsd"); !apierrors.IsForbidden(err) || findings != nil {
			t.Errorf("got %v, %v", findings, err)
		}
	}
}

// testNoNamespace: a namespace that is not there, or is going, is no fault of a node.
func testNoNamespace(t *testing.T, w checkWorld) {
	going := w.namespace(t, "going", "privileged")
	_, err := w.client.CoreV1().ConfigMaps(going).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}, metav1.CreateOptions{})
	must(t, err)
	must(t, w.client.CoreV1().Namespaces().Delete(t.Context(), going, metav1.DeleteOptions{}))
	for namespace, is := range map[string]func(error) bool{"nowhere": apierrors.IsNotFound, going: apierrors.IsForbidden} {
		checks := preflight.NodeChecks{Client: w.client.CoreV1(), Namespace: namespace}
		if findings, err := checks.Modules(t.Context(), w.nodes(t, "n1"), "nfsd"); !is(err) || findings != nil {
			t.Errorf("%s: got %v, %v", namespace, findings, err)
		}
		if findings, err := checks.Privileged(t.Context()); !is(err) || findings != nil {
			t.Errorf("%s: got %v, %v", namespace, findings, err)
		}
	}
}

// testTroubledPods: an image that is not there, and one without a shell.
func testTroubledPods(t *testing.T, w checkWorld) {
	namespace := w.namespace(t, "troubled", "privileged")
	for trouble, words := range map[devcluster.Trouble]string{devcluster.ImagePullBackOff: "ImagePullBackOff: Back-off pulling image", devcluster.Failed: "its pod failed: exit code 1"} {
		checks := preflight.NodeChecks{Client: w.client.CoreV1(), Namespace: namespace, Image: devcluster.TroubleImage(trouble)}
		findings, err := checks.Modules(t.Context(), w.nodes(t, "n1"), "nfsd")
		must(t, err)
		if len(findings) != 1 || findings[0].Severity != preflight.Note || !strings.Contains(findings[0].Message, words) {
			t.Errorf("%s: got %+v", trouble, findings)
		}
	}
	w.clean(t, namespace)
}
