package placement_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
)

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
		{asks("bears-not-ready", "", onlyOn("fresh"), tolerating(corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: "Exists", Effect: "NoSchedule"})), "fresh"},
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
		// Of this zone only one node bears the pod: the others are no domains where the constraint says so, and empty ones where it does not.
		{asks("honors-taints-1", "", as("honest"), selecting(map[string]string{"zone": "c"}), spreadBy(corev1.LabelHostname), honoringTaints), "soft"},
		{asks("honors-taints-2", "", as("honest"), selecting(map[string]string{"zone": "c"}), spreadBy(corev1.LabelHostname), honoringTaints), "soft"},
		{asks("ignores-taints", "", as("honest"), selecting(map[string]string{"zone": "c"}), spreadBy(corev1.LabelHostname)), "-"},
		{asks("gated", "", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/admission"}}
		}), "-"},
		{asks("sandbox", "", func(p *corev1.Pod) { p.Spec = sized.Spec }), "large"},
		// A limit of the pod alone is not its request: that is what the containers ask together.
		{asks("second-sandbox", "", func(p *corev1.Pod) { p.Spec = *withCPU(sized, "6", false) }), "large"},
		{asks("third-sandbox", "", func(p *corev1.Pod) { p.Spec = *withCPU(sized, "6", true) }), "-"},
	} {
		facts := s.facts(t, test.pod.Namespace)
		pod := s.agree(t, test.pod, facts)
		if pod == nil {
			continue
		}
		bound := pod.Spec.NodeName
		if test.on == "-" && bound != "" || test.on != "-" && bound == "" || test.on != "" && test.on != "-" && bound != test.on {
			t.Errorf("%s: is on %q, which is not what the case is about", test.pod.Name, bound)
		}
		if bound == "" {
			s.gone(t, test.pod)
			continue
		}
		defer s.gone(t, test.pod)
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
