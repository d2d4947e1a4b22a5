package jr2_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

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
