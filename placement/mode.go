package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Mode is where Sandboxes run in relation to the agents that use them.
type Mode string

const (
	// CoLocated Sandboxes run on the node of their agent and share its ReadWriteOnce workspace volume. It is the default.
	CoLocated Mode = "co-located"
	// SeparatePool Sandboxes run on nodes of their own, and need a workspace volume that several nodes mount for writing.
	SeparatePool Mode = "separate pool"
)

// ModeOf tells the mode by whether the two kinds of pods say the same about nodes: node selector, tolerations in any order, affinity and
// topology spread constraints. Priority moves no pod to another node.
func ModeOf(agents, sandboxes Rules) Mode {
	same := equality.Semantic.DeepEqual(agents.NodeSelector, sandboxes.NodeSelector) &&
		sameTolerations(agents.Tolerations, sandboxes.Tolerations) &&
		equality.Semantic.DeepEqual(agents.Affinity, sandboxes.Affinity) &&
		equality.Semantic.DeepEqual(agents.TopologySpreadConstraints, sandboxes.TopologySpreadConstraints)
	if same {
		return CoLocated
	}
	return SeparatePool
}

// sameTolerations compares them as sets. No operator is Equal.
func sameTolerations(a, b []corev1.Toleration) bool {
	has := func(all []corev1.Toleration, one corev1.Toleration) bool {
		return slices.ContainsFunc(all, func(other corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(plain(one), plain(other))
		})
	}
	for _, one := range a {
		if !has(b, one) {
			return false
		}
	}
	for _, one := range b {
		if !has(a, one) {
			return false
		}
	}
	return true
}

func plain(t corev1.Toleration) corev1.Toleration {
	if t.Operator == "" {
		t.Operator = corev1.TolerationOpEqual
	}
	return t
}

// CheckWorkspace refuses a workspace volume that the pods of both kinds could not mount: a separate pool needs ReadWriteMany, because the two
// pods are on different nodes; on one node ReadWriteOnce is enough, and ReadWriteOncePod is not. No access mode at all means ReadWriteOnce,
// the default of the source document. The error is a *WorkspaceError.
func CheckWorkspace(agents, sandboxes Rules, modes ...corev1.PersistentVolumeAccessMode) error {
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	mode := ModeOf(agents, sandboxes)
	if slices.Contains(modes, corev1.ReadWriteMany) || mode == CoLocated && slices.Contains(modes, corev1.ReadWriteOnce) {
		return nil
	}
	return &WorkspaceError{Mode: mode, AccessModes: modes}
}

// WorkspaceError says that agents and Sandboxes could not share their workspace volume.
type WorkspaceError struct {
	Mode        Mode
	AccessModes []corev1.PersistentVolumeAccessMode
}

func (e *WorkspaceError) Error() string {
	texts := make([]string, len(e.AccessModes))
	for i, mode := range e.AccessModes {
		texts[i] = string(mode)
	}
	have := strings.Join(texts, ", ")
	if e.Mode == SeparatePool {
		return fmt.Sprintf("refusing: Sandboxes are placed otherwise than agents, and the workspace is %s — set its accessModes to ReadWriteMany with a storage class that has it, or give both the same nodeSelector, tolerations, affinity and topologySpreadConstraints", have)
	}
	return fmt.Sprintf("refusing: Sandboxes and agents share the workspace, and its access mode %s does not let two pods write — set accessModes to ReadWriteOnce or ReadWriteMany", have)
}

// On returns the rules with one node required by its name: where a co-located Sandbox runs. The rules given are not changed, and what they
// require of nodes still holds.
func (r Rules) On(node string) Rules {
	affinity := r.Affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	name := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{name}}},
		}
	} else {
		for i := range required.NodeSelectorTerms { // any term is enough, so each must name the node
			term := &required.NodeSelectorTerms[i]
			if len(term.MatchFields)+len(term.MatchExpressions) > 0 { // an empty term matches nothing, and must not begin to
				term.MatchFields = append(term.MatchFields, name)
			}
		}
	}
	r.Affinity = affinity
	return r
}
