package event

// EnvApplied says which names .env added to the environment, in file order and without values.
type EnvApplied struct {
	Names []string `json:"names"`
}

// Started opens a converge.
type Started struct {
	Instance  string `json:"instance"`
	Context   string `json:"context"`
	Namespace string `json:"namespace"`
}

// PlanStarted opens a plan: the looks of a converge that writes nothing.
type PlanStarted struct {
	Instance  string `json:"instance"`
	Context   string `json:"context"`
	Namespace string `json:"namespace"`
}

// TypecheckStarted says that the Instance's own compiler runs.
type TypecheckStarted struct{}

// TypecheckSkipped says why no compiler ran.
type TypecheckSkipped struct {
	Reason string `json:"reason"`
}

// Noted is a warning that stops nothing.
type Noted struct {
	Message string `json:"message"`
}

// Walked says what the registered Workflows carry.
type Walked struct {
	Agents    []string `json:"agents"`
	Workflows []string `json:"workflows"`
}

// KubernetesFound is the version of the API server as it gives it, and the floor that it meets.
type KubernetesFound struct {
	Version string `json:"version"`
	Floor   string `json:"floor"`
}

// PlatformsResolved is the set of platforms that images are built for.
type PlatformsResolved struct {
	Platforms []string `json:"platforms"`
	// Nodes is the number of nodes that the set was read from; 0 when the configuration names the set.
	Nodes int `json:"nodes"`
	// Skipped are the architectures for which no image is released.
	Skipped []string `json:"skipped,omitempty"`
	// FromConfig says that the configuration names the set and no node was read.
	FromConfig bool `json:"fromConfig,omitempty"`
}

// SandboxNodes says where a Sandbox can run now, and why it cannot on each other node.
type SandboxNodes struct {
	Names    []string       `json:"names"`
	Excluded []ExcludedNode `json:"excluded,omitempty"`
}

// ExcludedNode is a node on which no Sandbox can run now.
type ExcludedNode struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// SizeTooLarge says that no Sandbox node has the allocatable for a Size.
type SizeTooLarge struct {
	Memory    string   `json:"memory"`
	CPU       string   `json:"cpu"`
	Workflows []string `json:"workflows"`
}

// KitResolved says which Kit images run and from where the nodes pull them.
type KitResolved struct {
	Version   string `json:"version"`
	Home      string `json:"home"`
	Custodian string `json:"custodian"`
	// Mirrored says that kitRegistry chose the home.
	Mirrored bool `json:"mirrored,omitempty"`
}

// PriorityClassesNamed lists the classes that the configuration names; empty for a key that it leaves out.
type PriorityClassesNamed struct {
	Control string `json:"control,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
}

func (EnvApplied) Type() string           { return "envApplied" }
func (Started) Type() string              { return "started" }
func (PlanStarted) Type() string          { return "planStarted" }
func (TypecheckStarted) Type() string     { return "typecheckStarted" }
func (TypecheckSkipped) Type() string     { return "typecheckSkipped" }
func (Noted) Type() string                { return "noted" }
func (Walked) Type() string               { return "walked" }
func (KubernetesFound) Type() string      { return "kubernetesFound" }
func (PlatformsResolved) Type() string    { return "platformsResolved" }
func (SandboxNodes) Type() string         { return "sandboxNodes" }
func (SizeTooLarge) Type() string         { return "sizeTooLarge" }
func (KitResolved) Type() string          { return "kitResolved" }
func (PriorityClassesNamed) Type() string { return "priorityClassesNamed" }
