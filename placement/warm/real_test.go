package warm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/placement/warm"
)

// A realPool is a pool whose one node has a kubelet and containerd: pods run and images are pulled.
type realPool struct {
	*pool
	registry *devcluster.Registry
	busybox  string
	// images are two that have no shell, and one that is nowhere.
	images warm.Images
	boxes  client.Client
}

// smallShare fits once into the room of a realPool.
func smallShare() placement.Share {
	return placement.Share{CPU: 400, Memory: 64 << 20, Disk: 1 << 20}
}

func newRealPool(t *testing.T) *realPool {
	p := &realPool{pool: newPool(t)}
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	p.registry = registry
	if p.busybox, err = registry.PushBusybox(t.Context(), "base/busybox:1", devcluster.DefaultArch); err != nil {
		devcluster.Missing(t, err.Error())
	}
	for _, name := range []string{"team/a:1", "team/b:1"} {
		image, err := random.Image(1<<10, 1)
		must(t, err)
		ref, err := registry.Reference(name)
		must(t, err)
		must(t, remote.Write(ref, image, registry.RemoteOptions(t.Context())...))
		p.images = append(p.images, ref.String())
	}
	p.images = append(p.images, registry.Host+"/team/nowhere:1")
	node, err := shared.StartRealNode(t.Context(), devcluster.RealNodeOptions{
		Name: p.node(0), Labels: map[string]string{"pool": p.name}, Taints: []corev1.Taint{{Key: "pool", Value: p.name, Effect: corev1.TaintEffectNoSchedule}},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		Registries:  []*devcluster.Registry{registry},
	})
	if errors.Is(err, devcluster.ErrNoRealNode) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
	t.Cleanup(func() { node.Close() }) //nolint:errcheck // the cluster ends with the tests
	return p
}

func (p *realPool) home() warm.Home {
	return warm.Home{Namespace: p.name, Sleeper: warm.Sleeper{Image: p.busybox, Command: []string{"sleep", "1000000"}}}
}

func (p *realPool) sandboxes() warm.Sandboxes {
	return warm.Sandboxes{Share: smallShare(), Rules: p.pool.sandboxes().Rules}
}

func (p *realPool) keep(images warm.Images, capacity warm.Capacity) {
	p.Helper()
	objects, err := images.Objects(p.home(), p.sandboxes())
	must(p, err)
	more, err := capacity.Objects(p.home(), p.sandboxes())
	must(p, err)
	set, err := apply.NewSet("warm", p.name, slices.Concat(objects, more)...)
	must(p, err)
	_, err = apply.Apply(p.Context(), shared.Config(), set, apply.Options{Prune: true})
	must(p, err)
}

// has waits until the node has the images that there are and not the other. The pods say so: the node itself lists its images each half minute.
func (p *realPool) has() []warm.NodeImage {
	p.Helper()
	var answers []warm.NodeImage
	p.eventually("the images are pulled", func() error {
		node, err := p.client.CoreV1().Nodes().Get(p.Context(), p.node(0), metav1.GetOptions{})
		if err != nil {
			return err
		}
		pulled, err := warm.Pulled(p.images, []corev1.Node{*node}, p.pods())
		if err != nil {
			return err
		}
		answers = pulled[0].Images
		if answers[0].Presence != warm.Present || answers[1].Presence != warm.Present || answers[2].Presence != warm.Absent {
			return fmt.Errorf("got %+v", answers)
		}
		return nil
	})
	return answers
}

// TestRealNode is warmth on a node where things run: images without a shell are pulled and one that is nowhere is told in the kubelet's words; on a
// node that a placeholder fills, a Sandbox runs at once and the placeholder waits.
func TestRealNode(t *testing.T) {
	p := newRealPool(t)
	p.keep(p.images, held())
	nowhere := p.has()[2]
	t.Logf("%s: %s", nowhere.Image, nowhere.Why)
	if !strings.Contains(nowhere.Why, "not found") {
		t.Errorf("the kubelet's words are lost: %+v", nowhere)
	}
	p.holds(0, p.node(0))
	p.eventually("the placeholder runs", func() error {
		for _, pod := range p.pods() {
			if warm.IsPlaceholder(&pod) && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return errors.New("it does not")
	})

	p.operate()
	begun := time.Now()
	p.realSandbox("one")
	p.runs("one")
	t.Logf("the Sandbox ran after %s", time.Since(begun).Round(time.Millisecond))
	waits := p.holds(1)
	t.Logf("the placeholder waits: %s", waits.Waiting[0].Reason)
	p.eventually("the Sandbox is Ready", func() error {
		box := &v1alpha1.Sandbox{}
		err := p.boxes.Get(t.Context(), client.ObjectKey{Namespace: p.name, Name: "one"}, box)
		if err == nil && box.Status.Phase != v1alpha1.SandboxReady {
			err = fmt.Errorf("it is %s", box.Status.Phase)
		}
		return err
	})
}

// operate gives the cluster the kinds and runs the operator's controller in the namespace.
func (p *realPool) operate() {
	p.Helper()
	crds, err := v1alpha1.CRDs()
	must(p, err)
	var objects []runtime.Object
	for _, crd := range crds {
		objects = append(objects, crd)
	}
	set, err := apply.NewSet("kinds", "default", objects...)
	must(p, err)
	_, err = apply.Apply(p.Context(), shared.Config(), set, apply.Options{Shared: true, Wait: true})
	must(p, err)
	kinds := runtime.NewScheme()
	must(p, v1alpha1.AddToScheme(kinds))
	p.boxes, err = client.New(shared.Config(), client.Options{Scheme: kinds})
	must(p, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, shared.Config(), controller.Options{Namespaces: []string{p.name}})
	}()
	p.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.Errorf("the controller: %v", err)
		}
	})
}

// realSandbox makes a Sandbox whose Harness listens and does no more.
func (p *realPool) realSandbox(name string) {
	p.Helper()
	lower := corev1.PreemptLowerPriority
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: p.name}, PreemptionPolicy: &lower}
	_, err := p.client.SchedulingV1().PriorityClasses().Create(p.Context(), class, metav1.CreateOptions{})
	must(p, err)
	shape := placement.SandboxPod(p.name, smallShare(), p.sandboxes().Rules)
	box := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: name}, Spec: v1alpha1.SandboxSpec{
		Image: p.busybox, Command: []string{"sh", "-c", "trap exit TERM; busybox nc -ll -p 8080 -e true & wait"},
		PodResources: shape.Spec.Resources, PriorityClassName: class.Name, NodeSelector: shape.Spec.NodeSelector, Tolerations: shape.Spec.Tolerations,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceEphemeralStorage: *resource.NewQuantity(smallShare().Disk, resource.BinarySI)}},
		SecurityContext: &corev1.SecurityContext{RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(1000)), AllowPrivilegeEscalation: ptr(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}}
	must(p, p.boxes.Create(p.Context(), box))
}
