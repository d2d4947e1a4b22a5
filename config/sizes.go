package config

import "strings"

// The Kit's numbers for one Sandbox (bytes and millicores).
const (
	KitMemory       = int64(2) << 30 // Size of a Workspace that nobody states
	KitCPU          = int64(1000)
	CustodianMemory = int64(64) << 20 // slice of the Custodian container
	CustodianCPU    = int64(50)
	HarnessFloor    = int64(256) << 20 // least memory of the Harness container
	SharedFloor     = int64(64) << 20  // least size of /dev/shm
	WorkDisk        = int64(10) << 30  // ephemeral-storage request of the Harness container, for /work
)

// Where a number of a Size comes from.
const (
	FromMachine  = "machine"  // workspace({ resources }) with customize({ resources }) over it
	FromInstance = "instance" // sandbox.resources
	FromKit      = "kit"      // KitMemory, KitCPU
)

// A WorkspaceSize is the resolved Size of one Workspace of one Workflow and how it is split over the containers of its Sandbox.
type WorkspaceSize struct {
	Workflow string `json:"workflow"`
	// Path is the chain of slot keys from the registered Machine; nil below a Machine that no slot names.
	Path []string `json:"path"`
	Size Size     `json:"size"`
	// MemorySource and CPUSource are FromMachine, FromInstance or FromKit.
	MemorySource string `json:"memorySource"`
	CPUSource    string `json:"cpuSource"`

	Harness   Size `json:"harness"`
	Custodian Size `json:"custodian"`
	// User has only what the Machine states; a User Container without a split shares the budget of the pod.
	User Limits `json:"user"`
	// SharedMemory is the size of /dev/shm in bytes: a quarter of the Harness memory, at least SharedFloor.
	SharedMemory int64 `json:"sharedMemory"`
}

// Sizes resolves the Size of every Workspace, in the order of the Workflows and of their walks. A Workspace whose Size
// leaves the Harness less than HarnessFloor, or no cpu, is a *SizeError; all of them come at once, one a line, and the other sizes with them.
//
// A Machine that states either limit takes the other from the Kit; the Instance's default applies only to a Workspace that states
// none, per field.
func Sizes(inst *Instance) ([]WorkspaceSize, error) {
	var sizes []WorkspaceSize
	var errs []error
	for _, wf := range inst.Workflows {
		for _, ws := range wf.Workspaces {
			size := ResolveSize(ws, inst.Sandbox.Resources)
			size.Workflow = wf.Name
			lacksMemory, lacksCPU := size.Harness.Memory < HarnessFloor, size.Harness.CPU <= 0
			if lacksMemory {
				errs = append(errs, &SizeError{WorkspaceSize: size, Short: "memory"})
			}
			if lacksCPU {
				errs = append(errs, &SizeError{WorkspaceSize: size, Short: "cpu"})
			}
			if !lacksMemory && !lacksCPU {
				sizes = append(sizes, size)
			}
		}
	}
	return sizes, together(errs...)
}

// ResolveSize resolves and splits the Size of one Workspace. It does not check the floor: Harness may come out negative.
func ResolveSize(ws Workspace, instance Limits) WorkspaceSize {
	out := WorkspaceSize{
		Path: ws.Path, MemorySource: FromKit, CPUSource: FromKit,
		Size:      Size{Memory: KitMemory, CPU: KitCPU},
		Custodian: Size{Memory: CustodianMemory, CPU: CustodianCPU},
		User:      ws.UserSize,
	}
	stated, source := ws.Size, FromMachine
	if stated.Memory == nil && stated.CPU == nil {
		stated, source = instance, FromInstance
	}
	if stated.Memory != nil {
		out.Size.Memory, out.MemorySource = *stated.Memory, source
	}
	if stated.CPU != nil {
		out.Size.CPU, out.CPUSource = *stated.CPU, source
	}
	out.Harness = Size{Memory: out.Size.Memory - CustodianMemory, CPU: out.Size.CPU - CustodianCPU}
	if out.User.Memory != nil {
		out.Harness.Memory -= *out.User.Memory
	}
	if out.User.CPU != nil {
		out.Harness.CPU -= *out.User.CPU
	}
	out.SharedMemory = max(out.Harness.Memory/4, SharedFloor)
	return out
}

func quotedChain(path []string) string {
	quoted := make([]string, len(path))
	for i, key := range path {
		quoted[i] = `"` + key + `"`
	}
	return strings.Join(quoted, " → ")
}
