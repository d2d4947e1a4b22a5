package placement_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
	quotawords "jr2.dev/jr2/placement/quota"
)

// A scheduled is a cluster whose real scheduler is asked what placement has answered.
type scheduled struct {
	client   kubernetes.Interface
	metadata metadata.Interface
}

func (s *scheduled) facts(t *testing.T, namespace string) *placement.Facts {
	t.Helper()
	facts, err := placement.ReadFacts(t.Context(), s.sources(namespace))
	if err != nil || len(facts.Unread) > 0 {
		t.Fatalf("%v %v", err, facts.Unread)
	}
	return facts
}

func (s *scheduled) sources(namespace string) placement.Sources {
	return placement.Sources{
		Nodes: s.client.CoreV1().Nodes(), Pods: s.client.CoreV1().Pods(""), DaemonSets: s.client.AppsV1().DaemonSets(""),
		Quotas: s.client.CoreV1().ResourceQuotas(namespace), LimitRanges: s.client.CoreV1().LimitRanges(namespace),
		RuntimeClasses: s.client.NodeV1().RuntimeClasses(), PriorityClasses: s.client.SchedulingV1().PriorityClasses(),
		Namespaces: s.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")),
	}
}

// fleet are nodes of which each has another trouble, and zones that are not alike.
func fleet() []devcluster.Node {
	has := func(text string) corev1.ResourceList { return list(text) }
	in := func(zone string) map[string]string { return map[string]string{"zone": zone} }
	return []devcluster.Node{
		{Name: "large", Labels: in("a"), Allocatable: has("cpu=8 memory=32Gi ephemeral-storage=100Gi")},
		{Name: "small", Labels: in("a"), Allocatable: has("cpu=2 memory=4Gi")},
		{Name: "sidecar", Labels: map[string]string{"zone": "b", "case": "sidecar"}, Allocatable: has("cpu=750m memory=4Gi")},
		{Name: "slots", Labels: in("b"), Allocatable: has("cpu=8 memory=32Gi pods=2")},
		{Name: "gpu", Labels: in("b"), Allocatable: has("cpu=4 memory=8Gi example.com/gpu=2"), Taints: []corev1.Taint{{Key: "gpu", Value: "2", Effect: corev1.TaintEffectNoSchedule}}},
		{Name: "agents", Labels: map[string]string{"zone": "c", "pool": "agents"}, Allocatable: has("cpu=4 memory=16Gi ephemeral-storage=20Gi"), Taints: []corev1.Taint{{Key: "pool", Value: "agents", Effect: corev1.TaintEffectNoExecute}}},
		{Name: "soft", Labels: in("c"), Allocatable: has("cpu=3 memory=3Gi"), Taints: []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}},
		{Name: "old", Labels: in("c"), Unschedulable: true},
		{Name: "fresh", Labels: in("a"), NotReady: true},
		{Name: "nowhere", Allocatable: has("cpu=6 memory=8Gi")},
	}
}

// agree makes the pod, lets the real scheduler speak and compares: a pod that was bound is on a node that was Usable, and one that was not finds
// none, in the scheduler's own words.
func (s *scheduled) agree(t *testing.T, pod *corev1.Pod) (bound string) {
	t.Helper()
	facts := s.facts(t, pod.Namespace)
	admitted, refused := facts.Admit(pod)
	if len(refused) > 0 {
		t.Fatalf("%s: %+v", pod.Name, refused)
	}
	want := placement.Explain(admitted, facts.Nodes, placement.ExplainOptions{Pods: facts.Pods, DaemonSets: facts.DaemonSets, Namespaces: facts.Namespaces})
	made, err := s.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), withImages(pod), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("%s: %v", pod.Name, err)
	}
	made, message := s.verdict(t, made)
	asked := placement.Requests(admitted)
	for name, quantity := range placement.Requests(made) {
		if made.Spec.NodeName == "" && quantity.Cmp(asked[name]) != 0 {
			t.Errorf("%s: asks %s of %s, and %v was expected", pod.Name, quantity.String(), name, asked)
		}
	}
	switch bound = made.Spec.NodeName; {
	case len(want.Gates) > 0:
		if bound != "" || message != "SchedulingGated: Scheduling is blocked due to non-empty scheduling gates" && !strings.HasPrefix(message, "SchedulingGated") {
			t.Errorf("%s: gated, and %q %q", pod.Name, bound, message)
		}
	case bound != "":
		for _, node := range want.Nodes {
			if node.Node == bound && node.Answer != placement.Usable {
				t.Errorf("%s: was bound to %s, of which was said: %s %+v", pod.Name, bound, node.Answer, node.Reasons)
			}
		}
	case want.Best() == placement.Usable:
		t.Errorf("%s: %s — and %v was said to be usable", pod.Name, message, want.With(placement.Usable))
	case !strings.HasPrefix(message, "Unschedulable: "+want.Message()):
		t.Errorf("%s:\ngot  %s\nwant Unschedulable: %s", pod.Name, message, want.Message())
	}
	return bound
}

// verdict waits for the scheduler's word.
func (s *scheduled) verdict(t *testing.T, pod *corev1.Pod) (*corev1.Pod, string) {
	t.Helper()
	message := ""
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		if pod, err = s.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				message = condition.Reason + ": " + condition.Message
			}
		}
		return pod.Spec.NodeName != "" || message != "", nil
	})
	if err != nil {
		t.Fatalf("%s: %v", pod.Name, err)
	}
	return pod, message
}

// gone deletes the pod at once.
func (s *scheduled) gone(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	now := int64(0)
	if err := s.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
}

// asks is a pod of the default namespace.
func asks(name, requests string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := asking(requests)
	pod.Name, pod.Namespace = name, metav1.NamespaceDefault
	for _, f := range change {
		f(pod)
	}
	return pod
}

// withImages gives the containers what the API server wants of them beside their shape.
func withImages(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Image = "example.com/app:1"
		}
	}
	return pod
}

func TestAgreesWithTheRealScheduler(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: fleet()})
	s := &scheduled{client: kubernetes.NewForConfigOrDie(cluster.Config()), metadata: metadata.NewForConfigOrDie(cluster.Config())}
	s.ground(t)
	t.Run("cases", s.cases)
	t.Run("generated", s.generated)
	t.Run("room on nodes", s.roomOnNodes)
	t.Run("room in quotas", s.room)
}

// ground makes what pods name.
func (s *scheduled) ground(t *testing.T) {
	t.Helper()
	kata := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata", Overhead: &nodev1.Overhead{PodFixed: list("cpu=250m memory=160Mi")}}
	if _, err := s.client.NodeV1().RuntimeClasses().Create(t.Context(), kata, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func selecting(labels map[string]string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = labels }
}

func tolerating(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = tolerations }
}

func onlyOn(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Affinity = placement.Rules{}.On(node).Affinity }
}

func as(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func spreadBy(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}}}
	}
}

func affinityTo(app, key string, apart bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		terms := []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key}}
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		if apart {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
			return
		}
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func inits(containers ...corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.InitContainers = containers }
}

func hostPort(number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: number, HostPort: number}}
	}
}

// cases go one after the other; those that land stay, and the next is judged with them there.
func (s *scheduled) cases(t *testing.T) {
	class := "kata"
	anyTaint := tolerating(corev1.Toleration{Operator: "Exists"})
	sized := placement.SandboxPod("default", placement.Share{Memory: 2 << 30, CPU: 3000, Disk: 10 << 30}, placement.Rules{})
	first, second := sidecar("proxy", "cpu=300m"), container("migrate", "cpu=500m")
	onSidecar := selecting(map[string]string{"case": "sidecar"})
	for _, test := range []struct {
		pod *corev1.Pod
		on  string // "" for any, "-" for none
	}{
		{asks("plain", "cpu=100m", selecting(map[string]string{"zone": "a"})), ""},
		{asks("too-small-everywhere", "cpu=64"), "-"},
		{asks("two-short", "cpu=64 memory=1Ti"), "-"},
		{asks("no-such-label", "", selecting(map[string]string{"pool": "none"})), "-"},
		{asks("not-tolerated", "", selecting(map[string]string{"pool": "agents"})), "-"},
		{asks("tolerated", "cpu=3", selecting(map[string]string{"pool": "agents"}), tolerating(corev1.Toleration{Key: "pool", Value: "agents"})), "agents"},
		{asks("no-room-left", "cpu=3", selecting(map[string]string{"pool": "agents"}), tolerating(corev1.Toleration{Key: "pool", Value: "agents"})), "-"},
		{asks("by-name", "cpu=100m", onlyOn("small")), "small"},
		{asks("by-name-of-nobody", "", onlyOn("gone")), "-"},
		{asks("by-name-and-cordon", "", onlyOn("old")), "-"},
		{asks("tolerates-a-cordon", "", onlyOn("old"), anyTaint), "old"},
		{asks("not-ready", "", onlyOn("fresh")), "-"},
		{asks("device", "example.com/gpu=2", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list("example.com/gpu=2") }, tolerating(corev1.Toleration{Key: "gpu", Operator: "Exists"})), "gpu"},
		{asks("second-device", "example.com/gpu=1", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list("example.com/gpu=1") }, tolerating(corev1.Toleration{Key: "gpu", Operator: "Exists"})), "-"},
		{asks("f02-case-1", "cpu=400m", onSidecar, inits(first, second)), "-"},
		{asks("f02-case-2", "cpu=400m", onSidecar, inits(second, first)), "sidecar"},
		{asks("overhead", "cpu=7900m", func(p *corev1.Pod) { p.Spec.RuntimeClassName = &class }), "-"},
		{asks("slot-1", "", onlyOn("slots")), "slots"},
		{asks("slot-2", "", onlyOn("slots")), "slots"},
		{asks("slot-3", "", onlyOn("slots")), "-"},
		{asks("port-1", "", onlyOn("nowhere"), hostPort(8080)), "nowhere"},
		{asks("port-2", "", onlyOn("nowhere"), hostPort(8080)), "-"},
		{asks("disk", "ephemeral-storage=50Gi"), "large"},
		{asks("no-disk-there", "ephemeral-storage=1Gi", onlyOn("nowhere")), "-"},
		{asks("alone-1", "", as("alone"), onlyOn("large"), affinityTo("alone", corev1.LabelHostname, true)), "large"},
		{asks("alone-2", "", as("alone"), onlyOn("large"), affinityTo("alone", corev1.LabelHostname, true)), "-"},
		{asks("not-wanted", "", as("alone"), onlyOn("large")), "-"},
		{asks("near-nobody", "", affinityTo("nobody", "zone", false)), "-"},
		{asks("near-itself", "", as("clique"), affinityTo("clique", "zone", false)), ""},
		{asks("spread-1", "", as("spread"), spreadBy("zone")), ""},
		{asks("spread-2", "", as("spread"), spreadBy("zone")), ""},
		{asks("spread-3", "", as("spread"), spreadBy("zone")), ""},
		{asks("spread-nowhere", "", as("spread"), spreadBy("zone"), func(p *corev1.Pod) { p.Spec.Affinity = placement.Rules{}.On("nowhere").Affinity }), "-"},
		{asks("gated", "", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/admission"}}
		}), "-"},
		{asks("sandbox", "", func(p *corev1.Pod) { p.Spec = sized.Spec }), "large"},
		// A limit of the pod alone is not its request: that is what the containers ask together.
		{asks("second-sandbox", "", func(p *corev1.Pod) { p.Spec = *withCPU(sized, "6", false) }), "large"},
		{asks("third-sandbox", "", func(p *corev1.Pod) { p.Spec = *withCPU(sized, "6", true) }), "-"},
	} {
		bound := s.agree(t, test.pod)
		if test.on == "-" && bound != "" || test.on != "-" && bound == "" || test.on != "" && test.on != "-" && bound != test.on {
			t.Errorf("%s: is on %q, which is not what the case is about", test.pod.Name, bound)
		}
		if bound == "" {
			s.gone(t, test.pod)
		}
	}
}

// withCPU changes the limit of the pod as a whole, and its request too if asked.
func withCPU(pod *corev1.Pod, cpu string, request bool) *corev1.PodSpec {
	spec := pod.Spec.DeepCopy()
	spec.Resources.Limits[corev1.ResourceCPU], spec.Resources.Requests = resource.MustParse(cpu), nil
	if request {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return spec
}

// generatedCases is how many pods are made up.
const generatedCases = 50

// generated pods come and go in front of the same nodes. The seed is told, and fixed: a disagreement stays one until it is mended.
func (s *scheduled) generated(t *testing.T) {
	const seed = 5
	random := rand.New(rand.NewPCG(seed, seed))
	var stay []*corev1.Pod
	landed := 0
	for i := range generatedCases {
		pod := madeUp(random, fmt.Sprintf("made-up-%d", i))
		if s.agree(t, pod) == "" {
			s.gone(t, pod)
			continue
		}
		landed++
		if stay = append(stay, pod); len(stay) > 12 {
			s.gone(t, stay[0])
			stay = stay[1:]
		}
		if t.Failed() {
			t.Fatalf("seed %d, case %d", seed, i)
		}
	}
	for _, pod := range stay {
		s.gone(t, pod)
	}
	t.Logf("%d of %d landed", landed, generatedCases)
	if landed < generatedCases/5 || landed > generatedCases*4/5 {
		t.Errorf("%d of %d landed: the pods try too little", landed, generatedCases)
	}
}

func madeUp(random *rand.Rand, name string) *corev1.Pod {
	sometimes := func(chance float64) bool { return random.Float64() < chance }
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	pod := asks(name, pick("", "cpu=100m", "cpu=1 memory=1Gi", "cpu=2500m", "cpu=3 memory=7Gi", "cpu=5", "memory=20Gi", "cpu=1 ephemeral-storage=30Gi"), as(pick("a", "b", "c")))
	pod.Labels["kind"] = "made-up"
	spec := &pod.Spec
	if sometimes(0.25) {
		inits(container("x", pick("cpu=1", "cpu=4", "memory=9Gi")), sidecar("y", pick("cpu=500m", "memory=2Gi")), container("z", pick("", "cpu=2")))(pod)
	}
	if sometimes(0.2) {
		spec.Resources = &corev1.ResourceRequirements{Limits: list(pick("cpu=7 memory=20Gi", "cpu=8", "memory=31Gi cpu=6"))}
	}
	if sometimes(0.2) {
		class := "kata"
		spec.RuntimeClassName = &class
	}
	if sometimes(0.25) {
		spec.NodeSelector = map[string]string{"zone": pick("a", "b", "c", "d")}
	}
	if sometimes(0.4) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: pick("gpu", "pool", "node.kubernetes.io/unschedulable", ""), Operator: "Exists"})
	}
	if sometimes(0.2) {
		onlyOn(pick("large", "small", "slots", "gpu", "agents", "soft", "old", "fresh", "nowhere"))(pod)
	}
	if sometimes(0.2) {
		affinityTo(pick("a", "b", "c"), pick("zone", corev1.LabelHostname), true)(pod)
	}
	if sometimes(0.15) {
		affinityTo(pick("a", "b", "c", "none"), pick("zone", corev1.LabelHostname), false)(pod)
	}
	if sometimes(0.3) {
		spreadBy(pick("zone", corev1.LabelHostname))(pod)
		constraint := &spec.TopologySpreadConstraints[0]
		constraint.MaxSkew = int32(1 + random.IntN(2))
		honor := corev1.NodeInclusionPolicyHonor
		if sometimes(0.4) {
			constraint.NodeTaintsPolicy = &honor
		}
		if sometimes(0.3) {
			three := int32(3 + random.IntN(3))
			constraint.MinDomains = &three
		}
		if sometimes(0.3) {
			constraint.MatchLabelKeys, constraint.LabelSelector = []string{"app"}, &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "made-up"}}
		}
	}
	if sometimes(0.15) {
		hostPort(8000 + int32(random.IntN(2)))(pod)
	}
	return pod
}

// roomOnNodes makes pods until the scheduler finds no node for one: so many must Room have counted.
func (s *scheduled) roomOnNodes(t *testing.T) {
	for _, test := range []struct{ shape *corev1.Pod }{
		{asks("by-cpu", "cpu=900m", selecting(map[string]string{"zone": "c"}))},
		{asks("by-memory", "memory=7Gi", selecting(map[string]string{"zone": "a"}))},
		{asks("tolerant", "cpu=1", tolerating(corev1.Toleration{Key: "gpu", Operator: "Exists"}), selecting(map[string]string{"zone": "b"}))},
		{asks("apart", "", as("apart"), affinityTo("apart", corev1.LabelHostname, true))},
		{asks("spread", "cpu=1500m", as("even"), spreadBy("zone"))},
		{asks("port", "", hostPort(9000))},
		{asks("sidecars", "cpu=200m", inits(container("x", "cpu=1"), sidecar("y", "cpu=700m")))},
		{asks("nowhere-at-all", "cpu=64")},
	} {
		facts := s.facts(t, test.shape.Namespace)
		room := placement.Room(test.shape, facts, placement.RoomOptions{})
		var made []*corev1.Pod
		for i := range room.More + 2 {
			pod := test.shape.DeepCopy()
			pod.Name = fmt.Sprintf("room-%s-%d", pod.Name, i)
			created, err := s.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), withImages(pod), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, created)
			if created, _ = s.verdict(t, created); created.Spec.NodeName == "" {
				break
			}
		}
		if int64(len(made)) != room.More+1 {
			t.Errorf("%s: %d were placed and then one was not; the room was %s", test.shape.Name, len(made)-1, room)
		}
		for _, pod := range made {
			s.gone(t, pod)
		}
	}
}

// room makes Sandboxes' pods in many namespaces, each with quotas of its own, until one is not let in.
func (s *scheduled) room(t *testing.T) {
	var group sync.WaitGroup
	for i, test := range []struct{ hard, scope, ranged string }{
		{hard: "pods=3"}, {hard: "pods=0"}, {hard: "limits.memory=5Gi"}, {hard: "requests.cpu=2500m"}, {hard: "limits.memory=512Mi"},
		{hard: "cpu=4 memory=3Gi"}, {hard: "count/pods=2 limits.cpu=10"}, {hard: "requests.memory=4Gi pods=9"}, {hard: "requests.ephemeral-storage=3Gi"},
		{hard: "pods=2", scope: "NotTerminating"}, {hard: "pods=2", scope: "NotBestEffort"}, {hard: "count/pods=4 configmaps=0"},
		{hard: "pods=3", ranged: "memory=1Gi"}, {hard: "pods=3", ranged: "memory=2Gi"}, {hard: "limits.cpu=1999m"},
	} {
		group.Go(func() { s.roomOf(t, fmt.Sprintf("room-%d", i), test.hard, test.scope, test.ranged) })
	}
	group.Wait()
}

func (s *scheduled) roomOf(t *testing.T, namespace, hard, scope, ranged string) {
	ctx := t.Context()
	must := func(err error) bool {
		if err != nil {
			t.Errorf("%s: %v", namespace, err)
		}
		return err == nil
	}
	_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list(hard)}}
	if scope != "" {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScope(scope)}
	}
	if !must(err) {
		return
	}
	if ranged != "" {
		lr := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "lr"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: list(ranged)}}}}
		if _, err := s.client.CoreV1().LimitRanges(namespace).Create(ctx, lr, metav1.CreateOptions{}); !must(err) {
			return
		}
	}
	if _, err = s.client.CoreV1().ResourceQuotas(namespace).Create(ctx, q, metav1.CreateOptions{}); !must(err) {
		return
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		q, err := s.client.CoreV1().ResourceQuotas(namespace).Get(ctx, "q", metav1.GetOptions{})
		_, account := s.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil && account == nil && len(q.Status.Used) == len(q.Spec.Hard), nil
	})
	if !must(err) {
		return
	}
	facts, err := placement.ReadFacts(ctx, s.sources(namespace))
	if !must(err) {
		return
	}
	facts.Nodes = nil // the quota alone: pods that are let in need no node here
	pod := placement.SandboxPod(namespace, placement.Share{Memory: 1 << 30, CPU: 1000, Disk: 1 << 30}, placement.Rules{NodeSelector: map[string]string{"pool": "none"}})
	room := placement.Room(pod, facts, placement.RoomOptions{})
	made := int64(0)
	for ; made <= room.More+1; made++ {
		one := pod.DeepCopy()
		one.Name = fmt.Sprint("s-", made)
		if _, err = s.client.CoreV1().Pods(namespace).Create(ctx, withImages(one), metav1.CreateOptions{}); err != nil {
			break
		}
	}
	if !apierrors.IsForbidden(err) || made != room.More {
		t.Errorf("%s (%s): %d were let in, then %v; the room was %s", namespace, hard, made, err, room)
		return
	}
	if limit := room.LimitedBy[0]; limit.On == placement.OnQuota {
		refusal, ok := quotawords.ParseRefusal(err.Error())
		if _, named := refusal.Requested[limit.Resource]; !ok || refusal.Quota != limit.Name || !named || refusal.Never() != limit.Never {
			t.Errorf("%s: %v; and the limit was %+v", namespace, err, limit)
		}
	}
}
