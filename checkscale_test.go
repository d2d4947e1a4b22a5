package jr2_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
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

// A cost is what some checks took.
type cost struct {
	took     time.Duration
	cpu      time.Duration // of this process, so that others on the machine do not count
	requests []devcluster.AuditEvent
	bytes    int64 // of answers, as they are after decompression
	peak     int64 // of the heap above what it was, garbage included
}

// costs measures what asks with a configuration.
func costs(t testing.TB, cluster *devcluster.Cluster, ask func(*rest.Config)) cost {
	t.Helper()
	config := cluster.Config()
	witness, err := cluster.Witness(config)
	if err != nil {
		t.Fatal(err)
	}
	var c cost
	var read atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = counted{response.Body, &read}
			}
			return response, err
		})
	})
	stop := peakOfHeap(&c.peak)
	begun, used := time.Now(), cpuTime(t)
	ask(config)
	c.took, c.cpu = time.Since(begun), cpuTime(t)-used
	stop()
	c.bytes = read.Load()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if c.requests, _, err = witness.Events(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

type counted struct {
	io.ReadCloser
	read *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// peakOfHeap samples the heap until it is stopped.
func peakOfHeap(peak *int64) (stop func()) {
	heap := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before := heap()
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			*peak = max(*peak, heap()-before)
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { close(ended); <-stopped }
}

// kinds counts the requests by verb and resource; a page of a list is a request.
func (c cost) kinds() map[string]int {
	counts := map[string]int{}
	for _, e := range c.requests {
		what := e.Resource
		if what == "" {
			what, _, _ = strings.Cut(e.URI, "?")
		}
		counts[e.Verb+" "+what]++
	}
	return counts
}

// most is how often the request was made that was made most often, of those with a verb.
func (c cost) most(verb string) (n int, what string) {
	counts := map[string]int{}
	for _, e := range c.requests {
		if e.Verb == verb {
			counts[e.URI]++
			if counts[e.URI] > n {
				n, what = counts[e.URI], e.URI
			}
		}
	}
	return n, what
}

// pages are the requests that asked for a part of a list.
func (c cost) pages() int {
	n := 0
	for _, e := range c.requests {
		if e.Verb == "list" && e.Query().Get("limit") != "" {
			n++
		}
	}
	return n
}

func (c cost) String() string {
	var lines []string
	for what, n := range c.kinds() {
		lines = append(lines, fmt.Sprintf("%4d %s", n, what))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s, %s of a CPU, %d requests, %d pages, %d KiB read, heap up by %d KiB\n%s", c.took.Round(time.Millisecond), c.cpu.Round(time.Millisecond), len(c.requests), c.pages(), c.bytes>>10, c.peak>>10, strings.Join(lines, "\n"))
}

// checkCrowd checks an Instance in such a cluster.
func checkCrowd(t testing.TB, cluster *devcluster.Cluster, dir string) (*jr2.Report, cost) {
	t.Helper()
	var report *jr2.Report
	c := costs(t, cluster, func(config *rest.Config) {
		var err error
		report, err = jr2.Check(t.Context(), jr2.Options{Dir: dir, Config: config, Context: contextName, Namespace: "crowded", Env: map[string]string{}, RegistryTransport: loopbackOnly{http.DefaultTransport}}, preflight.Choice{})
		if err != nil {
			t.Fatal(err)
		}
	})
	return report, c
}

// requestsOfACheck bounds what a check of a first contact asks, whatever the size of the cluster, but for the pages of nodes and of pods. Most of it
// is the plan: a look at each object and a dry run of it.
const requestsOfACheck = 150

// asks fails where lists were not read in pages, or more than once; nodes and pods say how many there are.
func (c cost) asks(t testing.TB, nodes, pods int) {
	t.Helper()
	const page = 500
	pages := map[string]int{"list nodes": (nodes + page - 1) / page, "list pods": (pods + page - 1) / page, "list namespaces": 1, "list runtimeclasses": 1}
	for what, want := range pages {
		if got := c.kinds()[what]; got != want {
			t.Errorf("%s: %d requests, want %d", what, got, want)
		}
	}
	for _, e := range c.requests {
		if large := e.Resource == "nodes" || e.Resource == "pods"; large && e.Verb == "list" && e.Query().Get("limit") != fmt.Sprint(page) {
			t.Errorf("not a page: %s", e)
		}
	}
	if n, what := c.most("list"); n > 1 {
		t.Errorf("listed %d times: %s", n, what)
	}
	if n, what := c.most("get"); n > 3 { // package apply looks at an object's metadata, and at all of it where the object is to be judged
		t.Errorf("read %d times: %s", n, what)
	}
	if got := len(c.requests) - pages["list nodes"] - pages["list pods"]; got > requestsOfACheck {
		t.Errorf("%d requests beside nodes and pods, want at most %d", got, requestsOfACheck)
	}
}

// TestCheckOfACrowd: lists come in pages, and each is read once.
func TestCheckOfACrowd(t *testing.T) {
	t.Parallel()
	const nodes, pods = 600, 1100
	cluster := crowd(t, nodes, pods)
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	report, c := checkCrowd(t, cluster, dir)
	if refusing(report) != "" {
		t.Errorf("got\n%s", report)
	}
	c.asks(t, nodes, pods)
	t.Logf("%s", c)
}

// What a check may take of a cluster with 2,000 nodes and 5,000 pods.
const (
	timeOfACheck = 5 * time.Second
	heapOfACheck = 192 << 20 // garbage included
	heapPerPod   = 16 << 10  // what each further pod may add to it: it is kept in part, in two copies while the last page arrives
)

// BenchmarkCheckOfACrowd: 2,000 nodes and 5,000 pods, then as many pods again; and the checks of a set in the same cluster.
func BenchmarkCheckOfACrowd(b *testing.B) {
	const nodes, pods = 2000, 5000
	cluster := crowd(b, nodes, pods)
	dir := folder(b, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	var peak int64
	check := func(b *testing.B, pods int) cost {
		var worst cost
		for b.Loop() {
			report, c := checkCrowd(b, cluster, dir)
			if refusing(report) != "" {
				b.Errorf("got\n%s", report)
			}
			worst = worse(worst, c)
		}
		worst.asks(b, nodes, pods)
		worst.report(b)
		return worst
	}
	b.Run("check", func(b *testing.B) {
		c := check(b, pods)
		peak = c.peak
		if c.took > timeOfACheck || c.peak > heapOfACheck {
			b.Errorf("it took %s and %d MiB, want less than %s and %d", c.took, c.peak>>20, timeOfACheck, heapOfACheck>>20)
		}
	})
	set := crowdSet(b)
	b.Run("set", func(b *testing.B) {
		var worst cost
		for b.Loop() {
			worst = worse(worst, costs(b, cluster, func(config *rest.Config) {
				config.AcceptContentTypes = apiruntime.ContentTypeProtobuf + "," + apiruntime.ContentTypeJSON
				client, err := kubernetes.NewForConfig(config)
				must(b, err)
				facts, err := preflight.ReadSetFacts(b.Context(), client)
				must(b, err)
				if found := preflight.Refused(preflight.Set(b.Context(), set, facts)); found != nil {
					b.Error(found)
				}
			}))
		}
		worst.asks(b, nodes, pods)
		worst.report(b)
		if worst.took > timeOfACheck || worst.peak > heapOfACheck {
			b.Errorf("it took %s and %d MiB, want less than %s and %d", worst.took, worst.peak>>20, timeOfACheck, heapOfACheck>>20)
		}
	})
	b.Run("check with twice the pods", func(b *testing.B) {
		populate(b, cluster, 0, 0, nodes, pods, 2*pods)
		if c := check(b, 2*pods); peak > 0 && c.peak-peak > heapPerPod*pods {
			b.Errorf("each further pod takes %d bytes of the heap, want less than %d", (c.peak-peak)/pods, heapPerPod)
		}
	})
}

// worse has the longer time and the higher peak of two.
func worse(a, b cost) cost {
	b.took, b.cpu, b.peak = max(a.took, b.took), max(a.cpu, b.cpu), max(a.peak, b.peak)
	return b
}

// report prints the cost.
func (c cost) report(b *testing.B) {
	b.ReportMetric(float64(len(c.requests)), "requests")
	b.ReportMetric(float64(c.pages()), "pages")
	b.ReportMetric(float64(c.bytes)/(1<<20), "MiB-read")
	b.ReportMetric(float64(c.peak)/(1<<20), "MiB-heap-peak")
	b.ReportMetric(c.took.Seconds(), "s-slowest")
	b.ReportMetric(c.cpu.Seconds(), "s-cpu")
	b.Logf("the slowest, and the requests of the last:\n%s", c)
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
