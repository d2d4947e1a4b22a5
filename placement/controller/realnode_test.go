package controller_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

// The Size of each Sandbox on the real node, and what of it is the Harness's.
const (
	realMemory, realCPU = int64(384) << 20, int64(300)
	realHarness         = realMemory - 64<<20
)

const realRepo = "https://git.example.com/team/app"

// A realSite is a site whose Sandboxes land on a node with a kubelet and containerd, with what a converge writes for them.
type realSite struct {
	*site
	clock    *clocktesting.FakePassiveClock
	instance *config.Instance
	key      config.Secret
	logs     kubernetes.Interface
}

func newRealSite(t *testing.T) *realSite {
	t.Helper()
	taint := corev1.Taint{Key: "only", Value: "real", Effect: corev1.TaintEffectNoSchedule}
	node := devcluster.RealNodeForTest(t, shared, devcluster.RealNodeOptions{Labels: map[string]string{"only": "real"}, Taints: []corev1.Taint{taint}})
	t.Cleanup(func() { node.Close() }) //nolint:errcheck // the cluster ends with the tests
	s := &realSite{site: newSite(t, nil), clock: clocktesting.NewFakePassiveClock(time.Now()), key: config.NewSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")}
	var loads errgroup.Group
	for ref, image := range realImages(t) {
		loads.Go(func() error { return node.LoadImage(t.Context(), ref, image) })
	}
	if err := loads.Wait(); err != nil {
		t.Fatal(err)
	}
	s.instance = &config.Instance{
		Name: s.namespace, KitVersion: config.DefaultKitVersion,
		Harness: config.Harness{Env: []config.HarnessEnv{{Name: "LITERAL", Value: config.NewSecret("of the configuration")}}},
		Sandbox: config.Sandbox{NodeSelector: map[string]string{"only": "real"}, Tolerations: []corev1.Toleration{{Key: "only", Operator: corev1.TolerationOpExists}}},
	}
	s.converge()
	var err error
	if s.logs, err = kubernetes.NewForConfig(shared.Config()); err != nil {
		t.Fatal(err)
	}
	s.start(nil, controller.Options{Clock: s.clock})
	return s
}

// converge writes what a converge does and the pod of a Sandbox reads.
func (s *realSite) converge() {
	s.Helper()
	in := render.Input{
		Instance: s.instance, ImageMap: "{}", SigningKey: s.key,
		Kit: render.Kit{Version: config.DefaultKitVersion, Harness: kitImage, Custodian: custodianImage, Operator: "o", Orchestrator: "o"},
	}
	for _, class := range render.PriorityClasses(in) {
		if err := s.Create(s.Context(), class); err != nil {
			s.Fatal(err)
		}
	}
	objects, err := render.Instance(in)
	if err != nil {
		s.Fatal(err)
	}
	for _, object := range objects {
		if o := object.(client.Object); slices.Contains([]string{names.HarnessEnvSecret, names.HarnessConfig, names.HeldConfig}, o.GetName()) {
			s.create(o)
		}
	}
}

// provision brings a Sandbox from outside, until it is Ready.
func (s *realSite) provision(edit func(*provision.Composition)) (*provision.Provisioned, error) {
	memory, cpu := realMemory, realCPU
	c := provision.Composition{
		Instance: s.instance, Workflow: "hold", Run: provision.NewRun(), SigningKey: s.key,
		Workspace: config.Workspace{Path: []string{}, Size: config.Limits{Memory: &memory, CPU: &cpu}},
		Images:    provision.Images{Harness: kitImage, Custodian: custodianImage},
	}
	c.Name = provision.SandboxName(c.Run, nil, 0)
	edit(&c)
	request, err := provision.Compose(c)
	if err != nil {
		return nil, err
	}
	return provision.Provision(s.Context(), shared.Config(), request, provision.Options{})
}

// TestRealNode is the life of Sandboxes, as a Workspace composes them, on a node where their pods run: one in the image that a converge built, as
// uid 1000 and with a repository, and one in the Kit's image. What a pod sees it tells itself; one loses its pod, of the other the lease lapses.
func TestRealNode(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	begun := time.Now()
	var built, kit *provision.Provisioned
	var group errgroup.Group
	group.Go(func() (err error) {
		built, err = s.provision(func(c *provision.Composition) {
			c.Images.Sandbox, c.Images.Built = builtImage, true
			c.Workspace.Repos = []config.RepoSlot{{Slot: "app", State: config.SlotBound, URL: realRepo}}
		})
		return err
	})
	group.Go(func() (err error) {
		kit, err = s.provision(func(*provision.Composition) {})
		return err
	})
	key := s.fetchRepo()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("two Sandboxes were Ready after %s", time.Since(begun).Round(time.Millisecond))
	for _, test := range []struct {
		box  *provision.Provisioned
		uid  int
		home string
		dirs map[string]string
	}{
		{built, 1000, "/home/jr2", map[string]string{"/repos/" + key: "read-only file system"}},
		{kit, kitUser, "/home/kit", nil},
	} {
		box := s.phase(test.box.Sandbox.Name, v1alpha1.SandboxReady)
		s.isGuaranteed(box)
		written := map[string]string{"/work": "", "/dev/shm": "", "/opt/jr2": "read-only file system", test.home: ""}
		for dir, why := range test.dirs {
			written[dir] = why
		}
		s.sees(box, s.ask(box), test.uid, written)
	}
	s.refusesTheNode()
	s.losesItsPod(kit)
	s.lapses(built)
}

// refusesTheNode asks for the node itself, as whoever may write Sandboxes could. None gets a pod: what the kind has no field for is not taken either.
func (s *realSite) refusesTheNode() {
	s.Helper()
	before := new(corev1.PodList)
	if err := s.List(s.Context(), before, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for name, spec := range map[string]map[string]any{
		"host-path":    {"volumes": []any{map[string]any{"name": "root", "hostPath": map[string]any{"path": "/"}}}},
		"privileged":   {"securityContext": map[string]any{"privileged": true}},
		"host-network": {"hostNetwork": true},
		"node-name":    {"nodeName": devcluster.DefaultRealNodeName},
		"one-node":     {"nodeSelector": map[string]any{corev1.LabelHostname: devcluster.DefaultRealNodeName}},
	} {
		spec["image"] = kitImage
		box := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": s.namespace}, "spec": spec}}
		box.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("Sandbox"))
		err := s.Create(s.Context(), box, client.FieldValidation("Strict"))
		if name == "one-node" && err == nil {
			s.refusedFor(name, v1alpha1.ReasonNotAllowed)
		} else if err == nil {
			s.Errorf("%s was taken", name)
		}
	}
	after := new(corev1.PodList)
	if err := s.List(s.Context(), after, client.InNamespace(s.namespace)); err != nil || len(after.Items) != len(before.Items) {
		s.Errorf("%d pods, and %d before, %v", len(after.Items), len(before.Items), err)
	}
}

// fetchRepo does what the Repo cache of the node would for the one Repo.
func (s *realSite) fetchRepo() (key string) {
	s.Helper()
	address, err := config.ParseRepoURL(realRepo)
	if err != nil {
		s.Fatal(err)
	}
	repo := new(v1alpha1.Repo)
	s.until("the Repo is made", func() bool { return s.get(address.Key, repo) })
	soon := metav1.NewTime(time.Now().Add(time.Second))
	s.nodeReports(repo, v1alpha1.RepoNode{Node: devcluster.DefaultRealNodeName, Present: true, Synced: true, Attempted: v1alpha1.AttemptClone, LastAttempt: &soon, LastFetched: &soon})
	return address.Key
}

// isGuaranteed looks at the pod as the kubelet has it, and at the cgroup that holds the whole of it.
func (s *realSite) isGuaranteed(box *v1alpha1.Sandbox) {
	s.Helper()
	pod := new(corev1.Pod)
	if !s.get(box.Name, pod) {
		s.Fatal("there is no pod")
	}
	if pod.Status.QOSClass != corev1.PodQOSGuaranteed || pod.Spec.NodeName != devcluster.DefaultRealNodeName || pod.UID != box.Status.PodUID {
		s.Errorf("%s on %q: %+v", pod.Status.QOSClass, pod.Spec.NodeName, pod.Status)
	}
	if whole := pod.Spec.Resources; whole == nil || whole.Limits.Memory().Value() != realMemory || whole.Limits.Cpu().MilliValue() != realCPU || whole.Requests.Memory().Value() != realMemory {
		s.Errorf("the pod's own resources are %+v", whole)
	}
	want := fmt.Sprint(realMemory)
	if got := s.limitOf("kubepods/pod" + string(pod.UID)); got != want {
		s.Errorf("the kernel limits the pod to %s bytes, want %s", got, want)
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.RestartCount > 0 || !status.Ready {
			s.Errorf("%+v", status)
		}
	}
}

// limitOf reads the memory limit of a cgroup of the real node, with cgroup v1 or v2.
func (s *realSite) limitOf(group string) string {
	s.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/memory/*/" + group + "/memory.limit_in_bytes", "/sys/fs/cgroup/*/" + group + "/memory.max"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			continue
		}
		limit, err := os.ReadFile(files[0])
		if err != nil {
			s.Fatal(err)
		}
		return strings.TrimSpace(string(limit))
	}
	return "any number of"
}

// losesItsPod deletes the pod of a Sandbox whose lease is renewed.
func (s *realSite) losesItsPod(p *provision.Provisioned) {
	s.Helper()
	name := p.Sandbox.Name
	if len(processesOf(s.T, name)) < 2 {
		s.Error("its processes are not on this machine")
	}
	begun := time.Now()
	s.deletePod(name)
	var lost *provision.LostError
	if err := p.Watch(s.Context()); !errors.As(err, &lost) || !errors.Is(err, provision.ErrPodLost) {
		s.Errorf("who holds it hears %v", err)
	}
	box := s.phase(name, v1alpha1.SandboxLost)
	s.Logf("Lost after %s: %v", time.Since(begun).Round(time.Millisecond), lost)
	if c := condition(box, v1alpha1.ConditionLost); c.Reason != v1alpha1.ReasonPodDeleted || box.Status.Node != devcluster.DefaultRealNodeName {
		s.Errorf("%+v", box.Status)
	}
	s.ends(name)
	s.until("its pod is gone", func() bool { return !s.get(name, &corev1.Pod{}) })
	p.Release()
}

// lapses lets the lease of a Sandbox lapse.
func (s *realSite) lapses(p *provision.Provisioned) {
	s.Helper()
	name := p.Sandbox.Name
	p.Release()
	s.collectorKnows()
	s.clock.SetTime(time.Now().Add(31 * time.Minute))
	s.renew(name, time.Now()) // each write wakes the controller
	begun := time.Now()
	s.gone(name)
	s.ends(name)
	s.until("its pod, its Service and its token are gone", func() bool {
		return !s.get(name, &corev1.Pod{}) && !s.get(name, &corev1.Service{}) && !s.get(name+names.TokenSuffix, &corev1.Secret{})
	})
	s.Logf("reaped after %s", time.Since(begun).Round(time.Millisecond))
}

// collectorKnows waits until the garbage collector of a new cluster has heard of Sandboxes. What it sees of them before, it looks at again so
// rarely that a test would wait for minutes.
func (s *realSite) collectorKnows() {
	s.Helper()
	orphan, made := new(corev1.ConfigMap), time.Time{}
	s.until("the garbage collector knows Sandboxes", func() bool {
		if time.Since(made) > time.Second {
			orphan, made = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Sandbox", Name: "nobody", UID: uuid.NewUUID()}}}}, time.Now()
			s.create(orphan)
		}
		return !s.get(orphan.Name, &corev1.ConfigMap{})
	})
}

// ends waits until nothing of a pod runs.
func (s *realSite) ends(name string) {
	s.Helper()
	s.until("its processes end", func() bool { return len(processesOf(s.T, name)) == 0 })
}

// processesOf are the processes of this machine that belong to the containers of a pod.
func processesOf(t *testing.T, pod string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), "HOSTNAME="+pod) {
			found = append(found, entry.Name())
		}
	}
	return found
}
