package config

// Limits is a Size as somebody states it: either field may be absent.
type Limits struct {
	// Memory is in bytes, rounded up; nil means not stated.
	Memory *int64 `json:"memory,omitempty"`
	// CPU is in millicores, rounded up; nil means not stated.
	CPU *int64 `json:"cpu,omitempty"`
}

// Size is a resolved Size: what one Sandbox reserves.
type Size struct {
	Memory int64 `json:"memory"` // bytes
	CPU    int64 `json:"cpu"`    // millicores
}
