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
