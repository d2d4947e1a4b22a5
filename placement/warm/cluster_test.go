package warm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/warm"
)

// shared is the one cluster of this package's tests: a real API server and a real scheduler. Each test has a pool of nodes and a namespace of its
// own, so they run beside each other.
var shared *devcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(func() int {
		cluster, err := devcluster.Start(context.Background(), devcluster.Options{Nodes: []devcluster.Node{}})
		if err != nil {
			fmt.Fprintln(os.Stderr, "start a cluster:", err)
			return 1
		}
		defer cluster.Close() //nolint:errcheck // the process ends
		shared = cluster
		return m.Run()
	}())
}

// A pool is a namespace and the nodes that its pods land on.
type pool struct {
	*testing.T
	name   string
	client kubernetes.Interface
}

// newPool makes nodes, each with room for so many Sandboxes of the Kit's Size, and a namespace at the restricted level.
func newPool(t *testing.T, places ...int) *pool {
	t.Helper()
	t.Parallel()
	config := shared.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	p := &pool{T: t, name: strings.ToLower(t.Name()), client: client}
	for n, room := range places {
		p.addNode(n, room)
	}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: p.name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{})
	must(t, err)
	return p
}

func (p *pool) node(n int) string { return fmt.Sprintf("%s-%d", p.name, n) }

func (p *pool) addNode(n, room int) {
	p.Helper()
	share := placement.KitShare()
	// A little more than the Sandboxes, for the pods of Images.
	quantity := func(each, more int64) resource.Quantity {
		return *resource.NewQuantity(each*int64(room)+more, resource.BinarySI)
	}
	must(p, shared.AddNode(p.Context(), devcluster.Node{
		Name: p.node(n), Labels: map[string]string{"pool": p.name}, Taints: []corev1.Taint{{Key: "pool", Value: p.name, Effect: corev1.TaintEffectNoSchedule}},
		Allocatable: corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewMilliQuantity(share.CPU*int64(room)+100, resource.DecimalSI),
			corev1.ResourceMemory:           quantity(share.Memory, 100<<20),
			corev1.ResourceEphemeralStorage: quantity(share.Disk, 1<<30),
		},
	}))
}

func (p *pool) sandboxes() warm.Sandboxes {
	return warm.Sandboxes{Rules: placement.Rules{
		NodeSelector: map[string]string{"pool": p.name}, Tolerations: []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}},
	}}
}

// keep applies what is kept warm, as an embedder does; what is no longer kept is pruned.
func (p *pool) keep(images warm.Images, capacity warm.Capacity) *apply.Outcome {
	p.Helper()
	home := warm.Home{Namespace: p.name}
	objects, err := images.Objects(home, p.sandboxes())
	must(p, err)
	more, err := capacity.Objects(home, p.sandboxes())
	must(p, err)
	set, err := apply.NewSet("warm", p.name, slices.Concat(objects, more)...)
	must(p, err)
	outcome, err := apply.Apply(p.Context(), shared.Config(), set, apply.Options{Prune: true})
	must(p, err)
	return outcome
}

// sandbox makes a pod like that of a Sandbox, with a class of this value and policy.
func (p *pool) sandbox(name string, value int32, policy corev1.PreemptionPolicy) {
	p.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d-%s", p.name, value, strings.ToLower(string(policy)))}, Value: value, PreemptionPolicy: &policy}
	if _, err := p.client.SchedulingV1().PriorityClasses().Create(p.Context(), class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		p.Fatal(err)
	}
	rules := p.sandboxes().Rules
	rules.PriorityClassName = class.Name
	pod := placement.SandboxPod(p.name, placement.KitShare(), rules)
	pod.Name = name
	harden(pod)
	must(p, wait.PollUntilContextTimeout(p.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := p.client.CoreV1().Pods(p.name).Create(ctx, pod, metav1.CreateOptions{})
		return !apierrors.IsForbidden(err), err // a new namespace has no account yet
	}))
}

// harden makes a shape into a pod that a restricted namespace takes.
func harden(pod *corev1.Pod) {
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Image = "sandbox.test/" + c.Name
		c.SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: ptr(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
}

func (p *pool) pods() []corev1.Pod {
	p.Helper()
	pods, err := p.client.CoreV1().Pods(p.name).List(p.Context(), metav1.ListOptions{})
	must(p, err)
	return pods.Items
}

// eventually waits for a condition, and tells how things stand when it does not come.
func (p *pool) eventually(what string, condition func() error) {
	p.Helper()
	var last error
	err := wait.PollUntilContextTimeout(p.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = condition()
		return last == nil, nil
	})
	if err != nil {
		for _, pod := range p.pods() {
			p.Logf("pod %s on %q: %s %v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions)
		}
		p.Fatalf("%s: %v", what, last)
	}
}

// holds waits until placeholders hold these nodes, in any order, and so many wait with a reason.
func (p *pool) holds(waiting int, nodes ...string) warm.Held {
	p.Helper()
	var held warm.Held
	p.eventually(fmt.Sprintf("%v are held and %d wait", nodes, waiting), func() error {
		held = warm.Standing(p.pods())
		got := slices.Sorted(slices.Values(held.Nodes))
		slices.Sort(nodes)
		for _, w := range held.Waiting {
			if w.Reason == "" {
				return errors.New("a placeholder waits without a reason")
			}
		}
		if !slices.Equal(got, nodes) || len(held.Waiting) != waiting {
			return fmt.Errorf("%v are held and %d wait", got, len(held.Waiting))
		}
		return nil
	})
	return held
}

// runs waits until a pod runs, and says where.
func (p *pool) runs(name string) (node string) {
	p.Helper()
	p.eventually("pod "+name+" runs", func() error {
		pod, err := p.client.CoreV1().Pods(p.name).Get(p.Context(), name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		if err == nil {
			node = pod.Spec.NodeName
		}
		return err
	})
	return node
}

// told waits until the scheduler says of a pod that it fits nowhere.
func (p *pool) told(name string) {
	p.Helper()
	p.eventually("pod "+name+" is told that it does not fit", func() error {
		pod, err := p.client.CoreV1().Pods(p.name).Get(p.Context(), name, metav1.GetOptions{})
		must(p, err)
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				p.Log(c.Message)
				return nil
			}
		}
		return errors.New("the scheduler has not spoken")
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
