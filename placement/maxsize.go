package placement

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
)

// A Share is the part of a node that one Sandbox takes: a Size and the disk of its home, caches and installed tools.
type Share struct {
	CPU    int64 `json:"cpu"`    // millicores
	Memory int64 `json:"memory"` // bytes
	Disk   int64 `json:"disk"`   // bytes of ephemeral storage
}

// String is "2.5 CPU, 12.6Gi memory and 19Gi disk". Numbers are cut to one decimal and never rounded up: what is printed fits.
func (s Share) String() string {
	cpu := fmt.Sprintf("%d.%d", s.CPU/1000, s.CPU%1000/100)
	return fmt.Sprintf("%s CPU, %s memory and %s disk", strings.TrimSuffix(cpu, ".0"), gibibytes(s.Memory), gibibytes(s.Disk))
}

// KitShare is what the Kit gives a Sandbox that states nothing.
func KitShare() Share {
	return Share{CPU: config.KitCPU, Memory: config.KitMemory, Disk: config.WorkDisk}
}

// ParseShare reads quantities as a Size states them: "500m", "2Gi". What is "" is zero, which SizeRange takes for not asked.
func ParseShare(cpu, memory, disk string) (Share, error) {
	var share Share
	for _, part := range []struct {
		name, text string
		into       *int64
		parse      func(any) (int64, error)
	}{{"cpu", cpu, &share.CPU, config.ParseCPU}, {"memory", memory, &share.Memory, config.ParseMemory}, {"disk", disk, &share.Disk, config.ParseMemory}} {
		if part.text == "" {
			continue
		}
		value, err := part.parse(part.text)
		if err != nil {
			return Share{}, fmt.Errorf("%s: %w", part.name, err)
		}
		*part.into = value
	}
	return share, nil
}

// gibibytes cuts to a tenth of a Gi, or to a Mi below one.
func gibibytes(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%dMi", bytes>>20)
	}
	whole, rest := bytes>>30, bytes&(1<<30-1)
	return strings.TrimSuffix(fmt.Sprintf("%d.%d", whole, rest*10>>30), ".0") + "Gi"
}

// DiskReserve is what is kept back of a node's ephemeral storage for what is no Sandbox's disk (source: seed, "Size sandboxes").
const DiskReserve = int64(1) << 30

// PoolOptions say what else takes of a node. The zero value is a node for the Sandbox alone.
type PoolOptions struct {
	// DaemonSets count on each node on which their pods land by the scheduler's rules.
	DaemonSets []appsv1.DaemonSet
	// Sidecars run in the Sandbox's pod beside what its Size pays for. The Custodian of a jr2 Sandbox is none: it is part of the Size.
	Sidecars []corev1.Container
}

// A PoolMax is the largest Sandbox that every node of a pool could hold if it held no other.
type PoolMax struct {
	Share
	// CPUNode, MemoryNode and DiskNode are the nodes that decide. They differ where no node is the smallest in everything.
	CPUNode    string `json:"cpuNode"`
	MemoryNode string `json:"memoryNode"`
	DiskNode   string `json:"diskNode"`
}

// MaxSize is what one Sandbox can have at most: of each node the allocatable, not the capacity, less the requests of the DaemonSets that land
// there, less those of the sidecars, and of the disk less DiskReserve; in a pool of mixed nodes the smallest decides (source: seed, "Size
// sandboxes"). Nothing is below zero. What runs beside DaemonSets is not taken off. False when there is no node, or none has reported what it
// has; a node that has not is left out.
func MaxSize(pool []corev1.Node, opts PoolOptions) (PoolMax, bool) {
	sidecars := amountsOf(Requests(&corev1.Pod{Spec: filledIn(opts.Sidecars)}))
	daemons := make([]daemon, len(opts.DaemonSets))
	for i := range opts.DaemonSets {
		pod := daemonPod(&opts.DaemonSets[i])
		daemons[i] = daemon{screenOf(&pod.Spec, podWords()), amountsOf(Requests(pod))}
	}
	most, found := PoolMax{}, false
	for i := range pool {
		if len(pool[i].Status.Allocatable) == 0 {
			continue
		}
		taken := amounts{disk: DiskReserve}
		taken.add(amounts{cpu: sidecars.cpu, memory: sidecars.memory})
		for _, d := range daemons {
			if d.screen.lands(&pool[i]) {
				taken.add(d.asks)
			}
		}
		most.lower(&pool[i], taken, !found)
		found = true
	}
	return most, found
}

type daemon struct {
	screen *screen
	asks   amounts
}

func filledIn(containers []corev1.Container) corev1.PodSpec {
	spec := corev1.PodSpec{Containers: containers}
	spec = *spec.DeepCopy()
	fillIn(&spec)
	return spec
}

// lower takes the numbers of a node where they are smaller, or where there is none yet.
func (m *PoolMax) lower(node *corev1.Node, taken amounts, first bool) {
	has := amountsOf(node.Status.Allocatable)
	for _, part := range []struct {
		value *int64
		node  *string
		left  int64
	}{{&m.CPU, &m.CPUNode, has.cpu - taken.cpu}, {&m.Memory, &m.MemoryNode, has.memory - taken.memory}, {&m.Disk, &m.DiskNode, has.disk - taken.disk}} {
		if left := max(part.left, 0); first || left < *part.value {
			*part.value, *part.node = left, node.Name
		}
	}
}

// A SizeRange is what an environment may ask for.
type SizeRange struct {
	// Default applies to what is not asked for.
	Default Share
	// Max caps what may be asked for. What is zero is as Default; what is zero in both is not capped.
	Max Share
}

// Resolve returns the Share for what was asked, where zero means not asked. More than the maximum is a *SizeCapError, and then the Share is what
// was asked, not what is allowed: nobody gets less than asked in silence.
func (r SizeRange) Resolve(asked Share) (Share, error) {
	or := func(value, other int64) int64 {
		if value == 0 {
			return other
		}
		return value
	}
	got := Share{or(asked.CPU, r.Default.CPU), or(asked.Memory, r.Default.Memory), or(asked.Disk, r.Default.Disk)}
	most := Share{or(r.Max.CPU, r.Default.CPU), or(r.Max.Memory, r.Default.Memory), or(r.Max.Disk, r.Default.Disk)}
	over := func(value, most int64) bool { return most > 0 && value > most }
	if over(got.CPU, most.CPU) || over(got.Memory, most.Memory) || over(got.Disk, most.Disk) {
		return got, &SizeCapError{Asked: got, Max: most}
	}
	return got, nil
}

// SizeCapError refuses a Sandbox that is larger than the maximum.
type SizeCapError struct {
	Asked, Max Share
}

func (e *SizeCapError) Error() string {
	var parts []string
	add := func(name string, asked, most int64, text func(int64) string) {
		if most > 0 && asked > most {
			parts = append(parts, fmt.Sprintf("%s %s, and at most %s is allowed", name, text(asked), text(most)))
		}
	}
	add("cpu", e.Asked.CPU, e.Max.CPU, config.FormatCPU)
	add("memory", e.Asked.Memory, e.Max.Memory, config.FormatMemory)
	add("disk", e.Asked.Disk, e.Max.Disk, config.FormatMemory)
	return "refusing: the Sandbox asks for " + strings.Join(parts, "; ")
}
