package provision_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

// shared is the one real API server of this package's tests, with the operator's controller on it. Each test has a namespace of its own.
var shared *devcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(func() int {
		log.SetLogger(logr.Discard())
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		cluster, err := devcluster.Start(ctx, devcluster.Options{
			Nodes: []devcluster.Node{{Name: "roomy", Allocatable: roomy()}},
			Users: []devcluster.User{nobody(), unwatching()},
		})
		if err == nil {
			defer cluster.Close()
			err = install(ctx, cluster.Config())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "start a cluster:", err)
			return 1
		}
		shared = cluster
		done := make(chan error, 1)
		go func() { done <- controller.Run(ctx, cluster.Config(), controller.Options{}) }()
		code := m.Run()
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "the controller:", err)
			return 1
		}
		return code
	}())
}

func roomy() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("256"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"), corev1.ResourcePods: resource.MustParse("10000"),
	}
}

// nobody may write no Sandbox; unwatching may, and not look at it.
func nobody() devcluster.User {
	return devcluster.User{Name: "nobody", Rules: map[string][]rbacv1.PolicyRule{"t-rights": {
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "get", "delete", "patch"}},
	}}}
}

func unwatching() devcluster.User {
	user := nobody()
	user.Name = "unwatching"
	user.Rules["t-rights"] = append(user.Rules["t-rights"], rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.Group}, Resources: []string{"sandboxes", "repos"}, Verbs: []string{"create", "get", "list", "delete", "patch"},
	})
	return user
}

// install gives a cluster the kinds and the priority class, and waits until they are served.
func install(ctx context.Context, cfg *rest.Config) error {
	crds, err := v1alpha1.CRDs()
	if err != nil {
		return err
	}
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	objects := []client.Object{&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "jr2-sandbox"}, Value: 1000}}
	for _, crd := range crds {
		objects = append(objects, crd)
	}
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, list := range []client.ObjectList{&v1alpha1.SandboxList{}, &v1alpha1.RepoList{}} {
			fresh, err := newClient(cfg)
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

func newClient(cfg *rest.Config) (client.Client, error) {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(all); err != nil {
			return nil, err
		}
	}
	return client.New(cfg, client.Options{Scheme: all})
}

// A site is a namespace, the admin's client for it, and an Instance in it.
type site struct {
	*testing.T
	client.Client
	cfg       *rest.Config
	namespace string
}

func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	s := siteOn(t, shared.Config())
	return s
}

func siteOn(t *testing.T, cfg *rest.Config) *site {
	t.Helper()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", " ", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 40)] + "-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &site{t, c, cfg, ns.Name}
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

func (s *site) until(what string, done func() bool) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// quota makes a ResourceQuota and waits until it counts.
func (s *site) quota(name string, hard corev1.ResourceList) *corev1.ResourceQuota {
	s.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	s.create(q)
	s.counted(q)
	s.until("the quota counts", func() bool { return s.get(name, q) && len(q.Status.Used) == len(hard) })
	return q
}

func (s *site) raise(q *corev1.ResourceQuota, hard corev1.ResourceList) {
	s.Helper()
	s.until("the quota is raised", func() bool {
		if !s.get(q.Name, q) {
			return false
		}
		q.Spec.Hard = hard
		return s.Update(s.Context(), q) == nil
	})
	s.counted(q)
}

// counted does for a quota of Sandboxes what its controller does some minutes after the kind was installed.
func (s *site) counted(q *corev1.ResourceQuota) {
	s.Helper()
	if _, ok := q.Spec.Hard[countOfSandboxes]; !ok {
		return
	}
	s.until("the quota counts Sandboxes", func() bool {
		if !s.get(q.Name, q) {
			return false
		}
		q.Status.Hard, q.Status.Used = q.Spec.Hard, list(countOfSandboxes, "0")
		return s.Status().Update(s.Context(), q) == nil
	})
}

const countOfSandboxes = corev1.ResourceName("count/sandboxes.core.jr2.dev")

func list(name corev1.ResourceName, value string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(value)}
}

// request composes the Sandbox of a Workspace without repositories.
func (s *site) request(edit ...func(*provision.Composition)) provision.Request {
	s.Helper()
	memory, cpu := int64(1)<<30, int64(200)
	c := provision.Composition{
		Instance: &config.Instance{Name: s.namespace, KitVersion: "0.2.1"}, Workflow: "hold",
		Workspace: config.Workspace{Path: []string{}, Size: config.Limits{Memory: &memory, CPU: &cpu}},
		Images:    provision.Images{Harness: "example.com/harness:1", Custodian: "example.com/envoy:1"},
		Run:       provision.NewRun(), SigningKey: config.NewSecret("key"),
	}
	for _, e := range edit {
		e(&c)
	}
	if c.Name == "" {
		c.Name = provision.SandboxName(c.Run, c.Workspace.Path, 0)
	}
	request, err := provision.Compose(c)
	if err != nil {
		s.Fatal(err)
	}
	return request
}

// are waits until the Sandboxes of the namespace, their pods and the tokens are as many.
func (s *site) are(sandboxes int) {
	s.Helper()
	count := func(list client.ObjectList, items func() int) int {
		if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.Fatal(err)
		}
		return items()
	}
	s.until(fmt.Sprintf("%d Sandboxes", sandboxes), func() bool {
		var boxes v1alpha1.SandboxList
		var tokens corev1.SecretList
		return count(&boxes, func() int { return len(boxes.Items) }) == sandboxes && count(&tokens, func() int { return len(tokens.Items) }) == sandboxes
	})
}
