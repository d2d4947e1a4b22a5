package warm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/warm"
)

// TestGiveWay is the whole story on nodes with one place each: a placeholder holds each of two nodes open, a Sandbox takes the place of one at
// once, what gave way waits, and goes to the node that an autoscaler would boot.
func TestGiveWay(t *testing.T) {
	p := newPool(t, 1, 1)
	p.keep(nil, held(func(c *warm.Capacity) { c.Replicas = ptr(int32(2)) }))
	p.holds(0, p.node(0), p.node(1))

	p.sandbox("one", 0, corev1.PreemptLowerPriority)
	taken := p.runs("one")
	left := p.node(0)
	if taken == left {
		left = p.node(1)
	}
	held := p.holds(1, left)
	t.Logf("it waits: %s", held.Waiting[0].Reason)
	if !strings.Contains(held.Waiting[0].Reason, "nodes are available") {
		t.Errorf("the scheduler's words are lost: %q", held.Waiting[0].Reason)
	}

	p.addNode(2, 1)
	p.holds(0, left, p.node(2))
	p.sandbox("two", 0, corev1.PreemptLowerPriority)
	p.sandbox("three", 0, corev1.PreemptLowerPriority)
	p.runs("two")
	p.runs("three")
	p.holds(2)
}

// TestOneNodeEach: nodes with many places are held by one placeholder each, and one that has no node of its own waits for it, which is what makes
// an autoscaler boot one. Together, they share.
func TestOneNodeEach(t *testing.T) {
	p := newPool(t, 3, 3)
	p.keep(nil, held(func(c *warm.Capacity) { c.Replicas = ptr(int32(3)) }))
	p.holds(1, p.node(0), p.node(1))
	p.keep(nil, held(func(c *warm.Capacity) { c.Replicas, c.Together = ptr(int32(6)), true }))
	p.holds(0, p.node(0), p.node(0), p.node(0), p.node(1), p.node(1), p.node(1))
}

// TestLargerPlaceholders: one that reserves more holds a node for a larger Sandbox, and goes for a small one.
func TestLargerPlaceholders(t *testing.T) {
	p := newPool(t, 1, 2)
	p.keep(nil, held(func(c *warm.Capacity) { c.Resources = placement.Share{CPU: 2000} }))
	p.holds(0, p.node(1))
	p.sandbox("first", 0, corev1.PreemptLowerPriority) // there is room elsewhere
	if on := p.runs("first"); on != p.node(0) {
		t.Errorf("it preempted on %s", on)
	}
	p.holds(0, p.node(1))
}

// TestNeverPreempts is what the warning of that name is about: a Sandbox whose class preempts nobody waits beside placeholders. And one of a
// class with the value 0 takes their place and leaves other pods alone.
func TestNeverPreempts(t *testing.T) {
	p := newPool(t, 1, 1)
	p.keep(nil, held())
	p.sandbox("first", 1000, corev1.PreemptNever)
	p.runs("first")
	p.sandbox("second", 1000, corev1.PreemptNever)
	p.told("second")
	if held := warm.Standing(p.pods()); len(held.Nodes) != 1 {
		t.Fatalf("got %+v", held)
	}
	must(t, p.client.CoreV1().Pods(p.name).Delete(t.Context(), "second", metav1.DeleteOptions{}))
	p.sandbox("third", 0, corev1.PreemptLowerPriority)
	p.runs("third")
	p.runs("first")
	p.holds(1)
}

// TestRoomAgrees: so many Sandboxes as Room says run, and the next waits, with placeholders in the way and one waiting.
func TestRoomAgrees(t *testing.T) {
	p := newPool(t, 2, 1, 0)
	p.sandbox("before", 0, corev1.PreemptLowerPriority)
	p.runs("before")
	p.keep(nil, held(func(c *warm.Capacity) { c.Replicas = ptr(int32(3)) }))
	p.eventually("two nodes are held", func() error {
		if held := warm.Standing(p.pods()); len(held.Nodes) != 2 || len(held.Waiting) != 1 {
			return fmt.Errorf("got %+v", held)
		}
		return nil
	})
	facts, err := placement.ReadFacts(t.Context(), placement.Sources{
		Nodes: p.client.CoreV1().Nodes(), Pods: p.client.CoreV1().Pods(p.name), PriorityClasses: p.client.SchedulingV1().PriorityClasses()})
	must(t, err)
	lower := corev1.PreemptLowerPriority
	pod := placement.SandboxPod(p.name, placement.KitShare(), p.sandboxes().Rules)
	room := placement.Room(pod, facts, placement.RoomOptions{GivesWay: warm.GivesWayTo(&schedulingv1.PriorityClass{PreemptionPolicy: &lower})})
	if beside := placement.Room(pod, facts, placement.RoomOptions{}); room.More != 2 || room.Waiting != 0 || beside.More != 0 || beside.Waiting != 1 {
		t.Fatalf("room for %d and %d wait; beside placeholders %d and %d", room.More, room.Waiting, beside.More, beside.Waiting)
	}
	for n := range room.More {
		p.sandbox(fmt.Sprintf("sandbox-%d", n), 0, corev1.PreemptLowerPriority)
		p.runs(fmt.Sprintf("sandbox-%d", n))
	}
	p.holds(3)
	p.sandbox("one-more", 0, corev1.PreemptLowerPriority)
	p.told("one-more")
}

// TestImagesOnSandboxNodes: one pod on each node where Sandboxes land and on no other, also on one that comes later.
func TestImagesOnSandboxNodes(t *testing.T) {
	p := newPool(t, 1, 1)
	must(t, shared.AddNode(t.Context(), devcluster.Node{Name: p.name + "-other", Labels: map[string]string{"pool": "other"}}))
	images := warm.Images{"r.test/a:1", "r.test/b:1"}
	p.keep(images, warm.Capacity{})
	everywhere := func(nodes ...string) {
		t.Helper()
		p.eventually(fmt.Sprintf("%v have the images", nodes), func() error {
			var on []string
			for _, pod := range p.pods() {
				if pod.Status.Phase == corev1.PodRunning {
					on = append(on, pod.Spec.NodeName)
				}
			}
			slices.Sort(on)
			if !slices.Equal(on, nodes) {
				return fmt.Errorf("pods run on %v", on)
			}
			return nil
		})
		all, err := placement.Nodes(t.Context(), p.client.CoreV1().Nodes())
		must(t, err)
		pulled, err := warm.Pulled(images, placement.Look(all, p.sandboxes().Rules).Nodes, p.pods())
		must(t, err)
		if len(pulled) != len(nodes) || slices.ContainsFunc(pulled, func(n warm.NodeImages) bool { return !n.All() }) {
			t.Errorf("got %+v", pulled)
		}
	}
	everywhere(p.node(0), p.node(1))
	p.addNode(2, 1)
	everywhere(p.node(0), p.node(1), p.node(2))
}

// TestUnwarm: a second apply changes nothing, and what is no longer kept warm goes, the class too.
func TestUnwarm(t *testing.T) {
	p := newPool(t, 1)
	images, on := warm.Images{"r.test/a:1"}, held()
	p.keep(images, on)
	if again := p.keep(images, on); again.Changed() != 0 {
		t.Errorf("the second apply changed %d objects: %+v", again.Changed(), again.Objects)
	}
	p.keep(images, held(func(c *warm.Capacity) { c.Priority = ptr(int32(-7)) })) // another value is another class
	p.holds(0, p.node(0))
	class := func(name string) error {
		_, err := p.client.SchedulingV1().PriorityClasses().Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	if old, now := class("jr2-placeholder-testunwarm-10"), class("jr2-placeholder-testunwarm-7"); !apierrors.IsNotFound(old) || now != nil {
		t.Errorf("classes: %v, %v", old, now)
	}
	p.keep(nil, warm.Capacity{Mode: warm.None})
	p.eventually("all is gone", func() error {
		if pods := p.pods(); len(pods) > 0 {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	sets, err := p.client.AppsV1().DaemonSets(p.name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if !apierrors.IsNotFound(class("jr2-placeholder-testunwarm-7")) || len(sets.Items) > 0 {
		t.Errorf("left: %d DaemonSets", len(sets.Items))
	}
}
