package placement_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
)

const gi = 1 << 30

// sized makes a node with this allocatable; "" leaves one out.
func sized(name, memory, cpu string) corev1.Node {
	n := node(name)
	n.Status.Allocatable = corev1.ResourceList{}
	if memory != "" {
		n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	if cpu != "" {
		n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	return n
}

func demand(memory, cpu int64, workflows ...string) placement.Demand {
	return placement.Demand{Size: config.Size{Memory: memory, CPU: cpu}, Workflows: workflows}
}

func TestTooLarge(t *testing.T) {
	for name, test := range map[string]struct {
		nodes   []corev1.Node
		demands []placement.Demand
		want    []placement.Demand
	}{
		"the document's example": {
			nodes:   []corev1.Node{sized("a", "16Gi", "8")},
			demands: []placement.Demand{demand(512*gi, 64000, "hold")},
			want:    []placement.Demand{demand(512*gi, 64000, "hold")},
		},
		"exactly fits": {
			nodes: []corev1.Node{sized("a", "2Gi", "1")}, demands: []placement.Demand{demand(2*gi, 1000, "hold")},
		},
		"one byte too large": {
			nodes:   []corev1.Node{sized("a", "2Gi", "1")},
			demands: []placement.Demand{demand(2*gi+1, 1000, "hold")}, want: []placement.Demand{demand(2*gi+1, 1000, "hold")},
		},
		"one millicore too large": {
			nodes:   []corev1.Node{sized("a", "2Gi", "0.999")},
			demands: []placement.Demand{demand(2*gi, 1000, "hold")}, want: []placement.Demand{demand(2*gi, 1000, "hold")},
		},
		"memory of one node and cpu of another do not add up": {
			nodes:   []corev1.Node{sized("a", "8Gi", "1"), sized("b", "1Gi", "8")},
			demands: []placement.Demand{demand(4*gi, 4000, "hold")}, want: []placement.Demand{demand(4*gi, 4000, "hold")},
		},
		"two small nodes do not make a large one": {
			nodes:   []corev1.Node{sized("a", "3Gi", "3"), sized("b", "3Gi", "3")},
			demands: []placement.Demand{demand(4*gi, 1000, "hold")}, want: []placement.Demand{demand(4*gi, 1000, "hold")},
		},
		"grouped by Size, workflows once each": {
			nodes:   []corev1.Node{sized("a", "1Gi", "1")},
			demands: []placement.Demand{demand(4*gi, 1000, "b"), demand(1*gi, 500, "small"), demand(8*gi, 1000, "c"), demand(4*gi, 1000, "a"), demand(4*gi, 1000, "b")},
			want:    []placement.Demand{demand(4*gi, 1000, "b", "a"), demand(8*gi, 1000, "c")},
		},
		"no node":                 {demands: []placement.Demand{demand(4*gi, 1000, "hold")}},
		"nothing known":           {nodes: []corev1.Node{node("a"), sized("b", "", "")}, demands: []placement.Demand{demand(4*gi, 1000, "hold")}},
		"half known, half enough": {nodes: []corev1.Node{sized("a", "8Gi", "")}, demands: []placement.Demand{demand(4*gi, 1000, "hold")}},
		"half known, too little": {
			nodes:   []corev1.Node{sized("a", "", "500m")},
			demands: []placement.Demand{demand(4*gi, 1000, "hold")}, want: []placement.Demand{demand(4*gi, 1000, "hold")},
		},
		"one unknown, one too small": {
			nodes:   []corev1.Node{node("a"), sized("b", "1Gi", "1")},
			demands: []placement.Demand{demand(4*gi, 1000, "hold")}, want: []placement.Demand{demand(4*gi, 1000, "hold")},
		},
		"F21: allocatable in Ki": {
			nodes:   []corev1.Node{sized("a", "3106640Ki", "2")},
			demands: []placement.Demand{demand(3100<<20, 1000, "hold")}, want: []placement.Demand{demand(3100<<20, 1000, "hold")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := placement.TooLarge(test.nodes, test.demands); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
