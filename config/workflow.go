package config

// A Workflow is a registered Machine: a file workflows/<name>.ts that exports `machine`.
type Workflow struct {
	Name string `json:"name"`
	// File is the absolute path of the module; empty for a Workflow given as a Go value.
	File      string `json:"file,omitempty"`
	MachineID string `json:"machineId,omitempty"`
	// HasDoor says that the Machine declares the shape of its input.
	HasDoor bool    `json:"hasDoor,omitempty"`
	Agents  []Agent `json:"agents,omitempty"`
	// Workspaces are the Sandboxes that a run can make, in walk order.
	Workspaces []Workspace `json:"workspaces,omitempty"`
	// OpenParts are parts that nobody bound; a converge refuses them.
	OpenParts []OpenPart `json:"openParts,omitempty"`
}

// An Agent is a model with instructions in an actor slot of a Machine.
type Agent struct {
	// Path is the chain of slot keys from the registered Machine; nil below a Machine that no slot names.
	Path  []string `json:"path"`
	Name  string   `json:"name"`
	Model string   `json:"model,omitempty"` // "<provider>/<model>"; empty while open
	// Access is "write" (the default), "read" or "none"; "none" runs in the Instance Harness.
	Access        string `json:"access"`
	ThinkingLevel string `json:"thinkingLevel,omitempty"`
}

// A Workspace is one Sandbox of a Machine.
type Workspace struct {
	Path []string `json:"path"`
	// Image is a registry ref, or a file: URL of an image context folder; empty means images/default, else the stock Harness.
	Image string `json:"image,omitempty"`
	// User is the image of the User Container, of the same two forms; empty means none.
	User string `json:"user,omitempty"`
	// Size is what the Machine states; Sizes resolves the rest.
	Size     Limits     `json:"size"`
	UserSize Limits     `json:"userSize"`
	Repos    []RepoSlot `json:"repos,omitempty"`
}

// A RepoSlot is a repository of a Workspace.
type RepoSlot struct {
	Slot string `json:"slot"`
	// State is "bound", "open" or "perRun".
	State string `json:"state"`
	URL   string `json:"url,omitempty"`
	Ref   string `json:"ref,omitempty"`
}

// An OpenPart is a Repo Slot without a url or an Agent without a model.
type OpenPart struct {
	// Path is nil when no chain of slot keys reaches the Machine.
	Path []string `json:"path"`
	// Kind is "repo" or "agent".
	Kind string `json:"kind"`
	// Slot is empty when the whole map of Repo Slots is open.
	Slot string `json:"slot,omitempty"`
}
