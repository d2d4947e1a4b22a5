package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// shared is the one real API server of this package's tests. Each test has a namespace of its own, and controllers that work there alone.
var (
	shared *devcluster.Cluster
	// withoutKinds is what Run said before the kinds were there.
	withoutKinds error
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx := context.Background()
		cluster, err := devcluster.Start(ctx, devcluster.Options{Nodes: []devcluster.Node{{Name: "roomy", Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("256"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("10000")}}}})
		if err == nil {
			defer cluster.Close()
			withoutKinds = controller.Run(ctx, cluster.Config(), controller.Options{})
			err = install(ctx, cluster)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "start a cluster:", err)
			return 1
		}
		shared = cluster
		code := m.Run()
		if err := followers.wait(ctx); code == 0 && err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: what belongs to a deleted Sandbox stays:", err)
			return 1
		}
		return code
	}())
}

// followers are objects whose Sandbox was deleted. The garbage collector of a new cluster needs half a minute to hear of a new kind, so they
// are waited for after all tests.
var followers gone

type gone struct {
	mu     sync.Mutex
	client client.Client
	all    []client.Object
}

func (g *gone) add(c client.Client, objects ...client.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.client, g.all = c, append(g.all, objects...)
}

func (g *gone) wait(ctx context.Context) error {
	for _, object := range g.all {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := g.client.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// install gives a cluster the kinds and waits until they are served.
func install(ctx context.Context, cluster *devcluster.Cluster) error {
	crds, err := v1alpha1.CRDs()
	if err != nil {
		return err
	}
	c, err := newClient(cluster.Config())
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := c.Create(ctx, crd); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, list := range []client.ObjectList{&v1alpha1.SandboxList{}, &v1alpha1.RepoList{}} {
			fresh, err := newClient(cluster.Config())
			if err != nil {
				return false, err
			}
			if err := fresh.List(ctx, list); err != nil {
				return false, nil // not served yet
			}
		}
		return true, nil
	})
}

func newClient(cfg *rest.Config) (client.WithWatch, error) {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(all); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(cfg, client.Options{Scheme: all, Log: logr.New(log.NullLogSink{})})
}

// A site is a namespace and the admin's client for it.
type site struct {
	*testing.T
	client.WithWatch
	namespace string
}

// newSite makes the namespace and waits for its account, without which no pod is admitted.
func newSite(t *testing.T, labels map[string]string) *site {
	t.Helper()
	c, err := newClient(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", " ", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Labels: labels}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &site{t, c, ns.Name}
	s.until("the namespace has its account", func() bool { return s.get("default", &corev1.ServiceAccount{}) })
	return s
}

// get reads an object of the namespace; false when it is not there.
func (s *site) get(name string, into client.Object) bool {
	s.Helper()
	err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, into)
	if err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	return err == nil
}

func (s *site) create(object client.Object) {
	s.Helper()
	object.SetNamespace(s.namespace)
	if err := s.Create(s.Context(), object); err != nil {
		s.Fatal(err)
	}
}

// until waits for what is bound to come.
func (s *site) until(what string, done func() bool) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// box waits until the Sandbox is as wanted, and returns it.
func (s *site) box(name, what string, wanted func(*v1alpha1.Sandbox) bool) *v1alpha1.Sandbox {
	s.Helper()
	last := new(v1alpha1.Sandbox)
	defer func() {
		if s.Failed() {
			s.Logf("%s was last %+v", name, last.Status)
		}
	}()
	s.until(name+" "+what, func() bool {
		last = new(v1alpha1.Sandbox)
		return s.get(name, last) && wanted(last)
	})
	return last
}

func (s *site) phase(name string, phase v1alpha1.SandboxPhase) *v1alpha1.Sandbox {
	s.Helper()
	return s.box(name, "is "+string(phase), func(box *v1alpha1.Sandbox) bool { return box.Status.Phase == phase })
}

func (s *site) reason(name, condition, reason string) *v1alpha1.Sandbox {
	s.Helper()
	return s.box(name, condition+" says "+reason, func(box *v1alpha1.Sandbox) bool { return reasonOf(box, condition) == reason })
}

// start runs a controller in the namespace until the test ends, or until stop is called, which waits for its end.
func (s *site) start(cfg *rest.Config, opts controller.Options) (stop func()) {
	s.Helper()
	if cfg == nil {
		cfg = shared.Config()
	}
	opts.Namespaces = []string{s.namespace}
	if opts.Log == nil && testing.Verbose() {
		opts.Log = slog.New(slog.NewTextHandler(s.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, cfg, opts) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("the controller ended with %v", err)
		}
	}
	s.Cleanup(stop)
	return stop
}

// condition is that of a Sandbox; an empty one when there is none.
func condition(box *v1alpha1.Sandbox, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(box.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func reasonOf(box *v1alpha1.Sandbox, kind string) string { return condition(box, kind).Reason }

// sandbox asks for a pod of memory 1Gi and one cpu.
func sandbox(name string, edits ...func(*v1alpha1.Sandbox)) *v1alpha1.Sandbox {
	size := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("1")}
	box := &v1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.SandboxSpec{
			Image:        "registry.example.com/team/jr2-sandbox-my-instance-default:6389bdf72d50-amd64",
			PodResources: &corev1.ResourceRequirements{Limits: size, Requests: size},
		},
	}
	for _, edit := range edits {
		edit(box)
	}
	return box
}
