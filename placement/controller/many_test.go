package controller_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestManySandboxes gives 200 Sandboxes at once to two controllers of which one leads: nodes take 150, a quota lets in 180. Each is placed or
// says why it waits, and all are placed when there is room.
func TestManySandboxes(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	node := func(i, pods int) devcluster.Node {
		return devcluster.Node{
			Name: fmt.Sprintf("many-%02d", i), Labels: map[string]string{"many": s.namespace},
			Taints:      []corev1.Taint{{Key: "many", Value: s.namespace, Effect: corev1.TaintEffectNoSchedule}},
			Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(fmt.Sprint(pods))},
		}
	}
	addNodes := func(from, to, pods int) {
		var group errgroup.Group
		for i := from; i < to; i++ {
			group.Go(func() error { return shared.AddNode(t.Context(), node(i, pods)) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	addNodes(0, 50, 3)
	s.limit("q", "pods", "180")
	s.tolerateAll(map[string]string{"many": s.namespace})
	var requests [2]atomic.Int64
	for i := range requests {
		s.start(s.through(counter("", "", &requests[i])), controller.Options{LeaderElection: true, LeaderElectionNamespace: s.namespace})
	}
	heap := heapInUse()
	var group errgroup.Group
	group.SetLimit(20)
	for i := range 200 {
		group.Go(func() error {
			box := sandbox(fmt.Sprintf("box-%03d", i), func(b *v1alpha1.Sandbox) {
				b.Namespace = s.namespace
				b.Spec.NodeSelector = map[string]string{"many": s.namespace}
				b.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
				small := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi"), corev1.ResourceCPU: resource.MustParse("10m")}
				b.Spec.PodResources = &corev1.ResourceRequirements{Limits: small, Requests: small}
			})
			return s.Create(t.Context(), box)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	s.tally(map[string]int{v1alpha1.ReasonPodReady: 150, v1alpha1.ReasonUnschedulable: 30, v1alpha1.ReasonQuotaExceeded: 20})
	t.Logf("200 Sandboxes placed or told why not: %d and %d requests, %d KiB more on the heap of both controllers and the test", requests[0].Load(), requests[1].Load(), (heapInUse()-heap)>>10)
	before := requests[0].Load() + requests[1].Load()
	s.limit("q", "pods", "200")
	addNodes(50, 60, 5)
	s.tally(map[string]int{v1alpha1.ReasonPodReady: 200})
	t.Logf("and room for the last 50: %d requests", requests[0].Load()+requests[1].Load()-before)
}

// tally waits until so many Sandboxes have each reason of Ready.
func (s *site) tally(want map[string]int) {
	s.Helper()
	got := map[string]int{}
	defer func() {
		if s.Failed() {
			s.Logf("last seen: %v", got)
		}
	}()
	s.until(fmt.Sprint("the Sandboxes are ", want), func() bool {
		var boxes v1alpha1.SandboxList
		if err := s.List(s.Context(), &boxes, client.InNamespace(s.namespace)); err != nil {
			s.Fatal(err)
		}
		clear(got)
		for i := range boxes.Items {
			got[reasonOf(&boxes.Items[i], v1alpha1.ConditionReady)]++
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
