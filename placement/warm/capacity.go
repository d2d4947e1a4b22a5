package warm

import (
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement"
)

// A Mode says whether nodes are held open.
type Mode string

const (
	// None holds none; so does the empty Mode. It is the default.
	None Mode = "none"
	// HoldCapacity holds nodes open.
	HoldCapacity Mode = "capacity"
)

// Defaults of a Capacity.
const (
	DefaultReplicas = int32(1)
	// DefaultPriority is the lowest for which the cluster autoscaler still boots a node; see Expendable.
	DefaultPriority = int32(-10)
)

// Capacity holds nodes open for Sandboxes. The zero value holds none. The fields are those of the source document's agents.sandboxWarming.
type Capacity struct {
	Mode Mode `json:"mode,omitempty"`
	// Replicas is the number of nodes to hold open. nil means DefaultReplicas.
	Replicas *int32 `json:"replicas,omitempty"`
	// Resources are what each placeholder reserves; what is zero is as one Sandbox asks for. More readies nodes for larger Sandboxes.
	Resources placement.Share `json:"resources,omitzero"`
	// Priority of the placeholders, below 0. nil means DefaultPriority.
	Priority *int32 `json:"priority,omitempty"`
	// These override what Sandboxes say about nodes, each alone. nil follows the Sandboxes; empty says nothing.
	NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
	Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Together lets one node hold several placeholders: Replicas then counts the places of Sandboxes, on however few nodes.
	Together bool `json:"together,omitempty"`
}

// placeholderName is what the Deployment is called after the prefix.
const placeholderName = "placeholder"

// On says whether nodes are held open.
func (c Capacity) On() bool { return c.Mode == HoldCapacity && c.replicas() != 0 }

func (c Capacity) replicas() int32 {
	if c.Replicas == nil {
		return DefaultReplicas
	}
	return *c.Replicas
}

func (c Capacity) priority() int32 {
	if c.Priority == nil {
		return DefaultPriority
	}
	return *c.Priority
}

// Validate refuses what could not hold a node open and give way: a *ValueError or a *PriorityError.
func (c Capacity) Validate() error {
	switch {
	case c.Mode != "" && c.Mode != None && c.Mode != HoldCapacity:
		return &ValueError{Field: "mode", Value: fmt.Sprintf("%q", c.Mode), Want: fmt.Sprintf("it is %s or %s", HoldCapacity, None)}
	case c.replicas() < 0:
		return &ValueError{Field: "replicas", Value: fmt.Sprint(c.replicas()), Want: "it is the number of nodes to hold open"}
	case c.Resources.CPU < 0 || c.Resources.Memory < 0 || c.Resources.Disk < 0:
		return &ValueError{Field: "resources", Value: c.Resources.String(), Want: "nothing below zero can be reserved"}
	case c.priority() >= 0:
		return &PriorityError{Priority: c.priority()}
	}
	return nil
}

// Objects are the priority class of the placeholders and the Deployment that keeps them, or nothing where no node is to be held open. Errors
// are those of Validate.
//
// A placeholder asks for what one Sandbox asks for, disk included, so that a Sandbox fits where one goes; it takes one pod slot, as a Sandbox
// does. It goes without delay, preempts nobody, and neither the cluster autoscaler nor Karpenter removes its node. Unless Together is set no
// node holds two: that is what makes the number of placeholders the number of nodes, since a scheduler would otherwise put all of them on one,
// and an autoscaler would boot no node for the one that waits.
//
// The class is called by namespace and priority, because neither two sets can share an object nor a class change its value.
func (c Capacity) Objects(home Home, sandboxes Sandboxes) ([]runtime.Object, error) {
	if err := c.Validate(); err != nil || !c.On() {
		return nil, err
	}
	if home.Namespace == "" {
		return nil, ErrNoNamespace
	}
	class := c.class(home)
	template := c.placeholder(home, sandboxes)
	return []runtime.Object{class, &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: home.meta(placeholderName, LabelPlaceholder),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr(c.replicas()),
			Selector: &metav1.LabelSelector{MatchLabels: home.selector(placeholderName)},
			// New ones beside old ones would need nodes of their own, and one that waits must not hold up the others.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			// One that gave way and waits for a node is no failed rollout. This value means no deadline.
			ProgressDeadlineSeconds: ptr(int32(math.MaxInt32)),
			RevisionHistoryLimit:    ptr(int32(1)),
			Template:                corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec},
		},
	}}, nil
}

// ClassName is the name of the placeholders' priority class.
func (c Capacity) ClassName(home Home) string {
	return fmt.Sprintf("%s-%s-%d", home.name(placeholderName), home.Namespace, -int64(c.priority()))
}

func (c Capacity) class(home Home) *schedulingv1.PriorityClass {
	meta := home.meta(placeholderName, LabelPlaceholder)
	meta.Name, meta.Namespace = c.ClassName(home), ""
	delete(meta.Labels, names.LabelApp)
	return &schedulingv1.PriorityClass{
		TypeMeta:         metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta:       meta,
		Value:            c.priority(),
		PreemptionPolicy: ptr(corev1.PreemptNever),
		Description:      "placeholders that hold nodes open for Sandboxes and give way to every pod",
	}
}

// rules are where placeholders land.
func (c Capacity) rules(home Home, sandboxes Sandboxes) placement.Rules {
	rules := sandboxes.Rules
	rules.PriorityClassName = c.ClassName(home)
	if c.NodeSelector != nil {
		rules.NodeSelector = c.NodeSelector
	}
	if c.Tolerations != nil {
		rules.Tolerations = c.Tolerations
	}
	if c.Affinity != nil {
		rules.Affinity = c.Affinity
	}
	if c.TopologySpreadConstraints != nil {
		rules.TopologySpreadConstraints = c.TopologySpreadConstraints
	}
	if !c.Together {
		rules.Affinity = apart(rules.Affinity, home.selector(placeholderName))
	}
	return rules
}

// apart adds that no node holds two of those that are selected.
func apart(affinity *corev1.Affinity, selector map[string]string) *corev1.Affinity {
	affinity = affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	anti := affinity.PodAntiAffinity
	anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: selector}, TopologyKey: corev1.LabelHostname,
	})
	return affinity
}

// placeholder is one pod.
func (c Capacity) placeholder(home Home, sandboxes Sandboxes) *corev1.Pod {
	share := over(c.Resources, sandboxes.share())
	asks := placement.Requests(placement.SandboxPod(home.Namespace, share, placement.Rules{}))
	// Limits of what a Sandbox has limits of, so that a quota of limits lets it in.
	limits := corev1.ResourceList{corev1.ResourceCPU: asks[corev1.ResourceCPU], corev1.ResourceMemory: asks[corev1.ResourceMemory]}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      home.labels(placeholderName, LabelPlaceholder),
			Annotations: map[string]string{names.AnnotationSafeToEvict: "false", names.AnnotationDoNotDisrupt: "true"},
		},
		Spec: home.pod(home.Sleeper.container(placeholderName, corev1.ResourceRequirements{Requests: asks, Limits: limits})),
	}
	place(&pod.Spec, c.rules(home, sandboxes))
	return pod
}
