package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jr2.dev/jr2/config"
)

// A Demand is a Size and the Workflows whose Workspaces ask for it.
type Demand struct {
	Size      config.Size `json:"size"`
	Workflows []string    `json:"workflows"`
}

// TooLarge returns the demands that no single node could hold: the allocatable memory and cpu of one node, whole, not what is free
// on it now. One Demand per distinct Size, in the order in which the Sizes first appear, each with its Workflows in that order and
// without duplicates.
//
// A node that does not state an allocatable is unknown unless what it does state is too little. When all nodes are unknown, or
// there is none, nothing is known to be too large: nil.
func TooLarge(nodes []corev1.Node, demands []Demand) []Demand {
	var large []Demand
	for _, demand := range group(demands) {
		known, held := false, false
		for _, node := range nodes {
			fit := fits(node.Status.Allocatable, demand.Size)
			known = known || fit != fitUnknown
			held = held || fit == fitYes
		}
		if known && !held {
			large = append(large, demand)
		}
	}
	return large
}

func group(demands []Demand) []Demand {
	var grouped []Demand
	for _, demand := range demands {
		at := slices.IndexFunc(grouped, func(g Demand) bool { return g.Size == demand.Size })
		if at < 0 {
			at = len(grouped)
			grouped = append(grouped, Demand{Size: demand.Size})
		}
		for _, workflow := range demand.Workflows {
			if !slices.Contains(grouped[at].Workflows, workflow) {
				grouped[at].Workflows = append(grouped[at].Workflows, workflow)
			}
		}
	}
	return grouped
}

type fit int

const (
	fitUnknown fit = iota
	fitNo
	fitYes
)

func fits(allocatable corev1.ResourceList, size config.Size) fit {
	memory, statesMemory := allocatable[corev1.ResourceMemory]
	cpu, statesCPU := allocatable[corev1.ResourceCPU]
	switch {
	case statesMemory && memory.Cmp(*resource.NewQuantity(size.Memory, resource.BinarySI)) < 0,
		statesCPU && cpu.Cmp(*resource.NewMilliQuantity(size.CPU, resource.DecimalSI)) < 0:
		return fitNo
	case statesMemory && statesCPU:
		return fitYes
	}
	return fitUnknown
}
