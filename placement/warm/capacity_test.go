package warm_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/warm"
)

func ptr[T any](value T) *T { return &value }

func home() warm.Home { return warm.Home{Namespace: "team-a"} }

// held is a Capacity that is on.
func held(change ...func(*warm.Capacity)) warm.Capacity {
	c := warm.Capacity{Mode: warm.HoldCapacity}
	for _, f := range change {
		f(&c)
	}
	return c
}

// rendered are the class and the Deployment.
func rendered(t *testing.T, c warm.Capacity, home warm.Home, sandboxes warm.Sandboxes) (*schedulingv1.PriorityClass, *appsv1.Deployment) {
	t.Helper()
	objects, err := c.Objects(home, sandboxes)
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0].(*schedulingv1.PriorityClass), objects[1].(*appsv1.Deployment)
}

func podOf(template corev1.PodTemplateSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
}

// TestOnePlaceholderIsOneSandbox: where a placeholder goes, exactly one Sandbox of the same Size fits, disk included.
func TestOnePlaceholderIsOneSandbox(t *testing.T) {
	for _, share := range []placement.Share{
		{}, {CPU: 2500, Memory: 12 << 30, Disk: 18 << 30}, {CPU: 1, Memory: 1}, {Memory: 3 << 30}, {Disk: 1 << 20},
	} {
		sandboxes := warm.Sandboxes{Share: share}
		_, deployment := rendered(t, held(), home(), sandboxes)
		whole := share
		kit := placement.KitShare()
		if whole.CPU == 0 {
			whole.CPU = kit.CPU
		}
		if whole.Memory == 0 {
			whole.Memory = kit.Memory
		}
		if whole.Disk == 0 {
			whole.Disk = kit.Disk
		}
		got := placement.Requests(podOf(deployment.Spec.Template))
		want := placement.Requests(placement.SandboxPod("team-a", whole, placement.Rules{}))
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%+v: a placeholder asks for %v, a Sandbox for %v", share, got, want)
		}
	}
}

func TestPlaceholdersAreWhatTheyAreToBe(t *testing.T) {
	class, deployment := rendered(t, held(), home(), warm.Sandboxes{Rules: placement.Rules{PriorityClassName: "batch-low"}})
	if class.Value != -10 || *class.PreemptionPolicy != corev1.PreemptNever || class.GlobalDefault || class.Name != "jr2-placeholder-team-a-10" || class.Namespace != "" {
		t.Errorf("class %+v", class)
	}
	if deployment.Name != "jr2-placeholder" || deployment.Namespace != "team-a" || *deployment.Spec.Replicas != 1 ||
		deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("deployment %+v", deployment)
	}
	pod := podOf(deployment.Spec.Template)
	if pod.Spec.PriorityClassName != class.Name || *pod.Spec.TerminationGracePeriodSeconds != 0 {
		t.Errorf("class %q, grace %d", pod.Spec.PriorityClassName, *pod.Spec.TerminationGracePeriodSeconds)
	}
	if pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] != "false" || pod.Annotations["karpenter.sh/do-not-disrupt"] != "true" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	if !warm.IsPlaceholder(pod) || warm.IsPlaceholder(placement.SandboxPod("team-a", placement.KitShare(), placement.Rules{})) {
		t.Error("a placeholder is not told from a Sandbox")
	}
	restricted(t, pod)
}

// restricted asks Pod Security's own library.
func restricted(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
		t.Errorf("not restricted: %s", result.ForbiddenDetail())
	}
}

// TestPlaceholdersFollowSandboxes: what Sandboxes say about nodes holds for placeholders, unless it is overridden, each field alone.
func TestPlaceholdersFollowSandboxes(t *testing.T) {
	rules := placement.Rules{
		NodeSelector: map[string]string{"pool": "agents"},
		Tolerations:  []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}},
		Affinity:     (placement.Rules{}).On("n1").Affinity,
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
	}
	before := rules.Affinity.DeepCopy()
	sandboxes := warm.Sandboxes{Rules: rules}
	apart := 0
	spec := func(c warm.Capacity) corev1.PodSpec {
		_, deployment := rendered(t, c, home(), sandboxes)
		spec := deployment.Spec.Template.Spec
		apart = 0
		if spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil {
			apart = len(spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
			term := spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[apart-1]
			if term.TopologyKey != corev1.LabelHostname || !reflect.DeepEqual(term.LabelSelector.MatchLabels, deployment.Spec.Selector.MatchLabels) {
				t.Errorf("apart by %+v", term)
			}
		}
		return spec
	}
	follows := spec(held())
	if follows.NodeSelector["pool"] != "agents" || follows.NodeSelector["kubernetes.io/os"] != "linux" || !reflect.DeepEqual(follows.Tolerations, rules.Tolerations) ||
		!reflect.DeepEqual(follows.Affinity.NodeAffinity, rules.Affinity.NodeAffinity) || !reflect.DeepEqual(follows.TopologySpreadConstraints, rules.TopologySpreadConstraints) || apart != 1 {
		t.Errorf("got %+v", follows)
	}
	if _, written := rules.NodeSelector["kubernetes.io/os"]; written || !reflect.DeepEqual(before, rules.Affinity) {
		t.Error("the rules that were given changed")
	}
	own := spec(held(func(c *warm.Capacity) {
		c.NodeSelector, c.Tolerations, c.Affinity = map[string]string{"pool": "warm"}, []corev1.Toleration{}, &corev1.Affinity{}
		c.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{}
	}))
	if own.NodeSelector["pool"] != "warm" || len(own.Tolerations) != 0 || own.Affinity.NodeAffinity != nil || len(own.TopologySpreadConstraints) != 0 || apart != 1 {
		t.Errorf("got %+v", own)
	}
	together := spec(held(func(c *warm.Capacity) { c.Together = true }))
	if apart != 0 || together.NodeSelector["pool"] != "agents" {
		t.Errorf("got %+v", together)
	}
}

func TestNothingIsHeldUnlessAsked(t *testing.T) {
	for name, c := range map[string]warm.Capacity{
		"zero": {}, "none": {Mode: warm.None, Replicas: ptr(int32(3))}, "no node": held(func(c *warm.Capacity) { c.Replicas = ptr(int32(0)) }),
	} {
		if objects, err := c.Objects(home(), warm.Sandboxes{}); err != nil || objects != nil {
			t.Errorf("%s: %v, %v", name, objects, err)
		}
	}
	if _, err := held().Objects(warm.Home{}, warm.Sandboxes{}); !errors.Is(err, warm.ErrNoNamespace) {
		t.Errorf("without a namespace: %v", err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	priority := func(value int32) func(*warm.Capacity) { return func(c *warm.Capacity) { c.Priority = &value } }
	for _, test := range []struct {
		change func(*warm.Capacity)
		want   string
	}{
		{priority(0), "refusing: placeholders with the priority 0 would not give way to pods without a priority — keep it below 0 (the default is -10)"},
		{priority(1000), "refusing: placeholders with the priority 1000"},
		{priority(-1), ""},
		{priority(-2147483648), ""},
		{func(c *warm.Capacity) { c.Mode = "Capacity" }, `refusing: mode of the placeholders is "Capacity" — it is capacity or none`},
		{func(c *warm.Capacity) { c.Replicas = ptr(int32(-1)) }, "refusing: replicas of the placeholders is -1"},
		{func(c *warm.Capacity) { c.Resources.Memory = -1 }, "refusing: resources of the placeholders is"},
	} {
		_, err := held(test.change).Objects(home(), warm.Sandboxes{})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	var refused *warm.PriorityError
	if err := held(priority(7)).Validate(); !errors.As(err, &refused) || refused.Priority != 7 {
		t.Errorf("got %v", err)
	}
}

// TestWhatKeepsPlaceholdersFromTheirWork tells what would make them useless or harmful.
func TestWhatKeepsPlaceholdersFromTheirWork(t *testing.T) {
	class := func(value int32, policy corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Value: value, PreemptionPolicy: &policy}
	}
	quota := func(name string, scope *corev1.ScopeSelector) corev1.ResourceQuota {
		hard := corev1.ResourceList{"limits.memory": resource.MustParse("8Gi"), "requests.cpu": resource.MustParse("4")}
		return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"}, Spec: corev1.ResourceQuotaSpec{Hard: hard, ScopeSelector: scope},
			Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"limits.memory": resource.MustParse("0"), "requests.cpu": resource.MustParse("0")}}}
	}
	sandboxesOnly := &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"batch"}}}}
	for _, test := range []struct {
		name     string
		capacity warm.Capacity
		around   warm.Surroundings
		codes    []string
		refused  bool
	}{
		{name: "nothing is known", capacity: held()},
		{name: "a class that preempts", capacity: held(), around: warm.Surroundings{Class: class(0, corev1.PreemptLowerPriority)}},
		{name: "a class without a policy preempts", capacity: held(), around: warm.Surroundings{Class: &schedulingv1.PriorityClass{}}},
		{name: "the Kit's class preempts nobody", capacity: held(), around: warm.Surroundings{Class: class(1000, corev1.PreemptNever)}, codes: []string{warm.NeverPreempts}},
		{name: "as low as placeholders", capacity: held(), around: warm.Surroundings{Class: class(-10, corev1.PreemptLowerPriority)}, refused: true},
		{name: "lower than placeholders", capacity: held(func(c *warm.Capacity) { c.Priority = ptr(int32(-5)) }), around: warm.Surroundings{Class: class(-9, corev1.PreemptLowerPriority)}, refused: true},
		{name: "expendable", capacity: held(func(c *warm.Capacity) { c.Priority = ptr(int32(-11)) }), codes: []string{warm.Expendable}},
		{name: "too small in one of three", capacity: held(func(c *warm.Capacity) { c.Resources.Disk = 1 << 30 }), codes: []string{warm.TooSmall}},
		{name: "larger is larger", capacity: held(func(c *warm.Capacity) { c.Resources.Memory = 8 << 30 })},
		{name: "quotas", capacity: held(), around: warm.Surroundings{Quotas: []corev1.ResourceQuota{quota("all", nil), quota("sandboxes", sandboxesOnly)}}, codes: []string{warm.CountedByQuota}},
		{name: "off", capacity: warm.Capacity{Priority: ptr(int32(-99))}, around: warm.Surroundings{Class: class(-100, corev1.PreemptNever)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			warnings, err := test.capacity.Check(home(), warm.Sandboxes{}, test.around)
			var codes []string
			for _, warning := range warnings {
				t.Log(warning.Message)
				codes = append(codes, warning.Code)
				if warning.Fix == "" || warning.Object == "" {
					t.Errorf("%+v", warning)
				}
			}
			var lower *warm.SandboxPriorityError
			if !slices.Equal(codes, test.codes) || errors.As(err, &lower) != test.refused || err != nil && !test.refused {
				t.Errorf("got %v, %v", codes, err)
			}
		})
	}
}

// TestRoomBehindPlaceholders: what a placeholder holds counts as free for a Sandbox that may take its place.
func TestRoomBehindPlaceholders(t *testing.T) {
	_, deployment := rendered(t, held(), home(), warm.Sandboxes{})
	placeholder := podOf(deployment.Spec.Template)
	placeholder.Spec.NodeName, placeholder.UID = "n1", "p"
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("3Gi"), "ephemeral-storage": resource.MustParse("11Gi"), "pods": resource.MustParse("10")}}}
	facts := &placement.Facts{Nodes: []corev1.Node{node}, Pods: []corev1.Pod{*placeholder}}
	sandbox := placement.SandboxPod("team-a", placement.KitShare(), placement.Rules{})
	if more := placement.Room(sandbox, facts, placement.RoomOptions{}).More; more != 0 {
		t.Errorf("%d fit beside it", more)
	}
	placeholder.Spec.Priority = ptr(int32(-10))
	facts.Pods = []corev1.Pod{*placeholder}
	class := func(value int32, policy *corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{Value: value, PreemptionPolicy: policy}
	}
	for _, test := range []struct {
		class *schedulingv1.PriorityClass
		more  int64
	}{{nil, 0}, {class(0, nil), 1}, {class(0, ptr(corev1.PreemptLowerPriority)), 1}, {class(1000, ptr(corev1.PreemptNever)), 0}, {class(-10, nil), 0}, {class(-9, nil), 1}} {
		if more := placement.Room(sandbox, facts, placement.RoomOptions{GivesWay: warm.GivesWayTo(test.class)}).More; more != test.more {
			t.Errorf("class %+v: %d fit in its place", test.class, more)
		}
	}
}

// TestStanding: a placeholder that a gate holds waits, and nobody is told to make it again.
func TestStanding(t *testing.T) {
	now := metav1.Now()
	pod := func(name string, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{warm.Label: warm.LabelPlaceholder}}}
		change(&p)
		return p
	}
	got := warm.Standing([]corev1.Pod{
		pod("a", func(p *corev1.Pod) { p.Spec.NodeName = "n2" }),
		pod("b", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }),
		pod("going", func(p *corev1.Pod) { p.Spec.NodeName, p.DeletionTimestamp = "n3", &now }),
		pod("ended", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n3", corev1.PodFailed }),
		pod("new", func(*corev1.Pod) {}),
		pod("gated", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/admission"}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
		}),
		pod("full", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available", LastTransitionTime: now}}
		}),
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.PodSpec{NodeName: "n4"}},
	})
	want := warm.Held{Nodes: []string{"n2", "n1"}, Waiting: []warm.Waiting{
		{Pod: "new"}, {Pod: "gated", Reason: "gate example.com/admission"}, {Pod: "full", Reason: "0/1 nodes are available", Since: now}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
