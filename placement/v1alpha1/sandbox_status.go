package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SandboxStatus is what the operator sees. It is written only when it changed.
type SandboxStatus struct {
	// +optional
	Phase SandboxPhase `json:"phase,omitempty"`
	// Endpoint is http://<name>.<namespace>.svc:<port>. It is set early and is no sign of readiness.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// PodRef and PodUID are the one Pod ever made.
	// +optional
	PodRef *Reference `json:"podRef,omitempty"`
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// +optional
	ServiceRef *Reference `json:"serviceRef,omitempty"`
	// Node is where the pod was placed.
	// +optional
	Node string `json:"node,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=key
	Repos []SandboxRepoStatus `json:"repos,omitempty"`
	// +optional
	Harness *HarnessStatus `json:"harness,omitempty"`
	// Waiting is the containers that wait, init containers first.
	// +optional
	// +listType=atomic
	Waiting []WaitingContainer `json:"waiting,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A Reference names an object in the same namespace.
type Reference struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// SandboxRepoStatus is how fresh a repository of a Sandbox is on its node.
type SandboxRepoStatus struct {
	// +required
	Key string `json:"key"`
	// Asked is when a fetch was asked for.
	// +required
	Asked metav1.Time `json:"asked"`
	// Fetched is the last fetch that worked, Attempted the last one.
	// +optional
	Fetched *metav1.Time `json:"fetched,omitempty"`
	// +optional
	Attempted *metav1.Time `json:"attempted,omitempty"`
	// Error is that of the last attempt.
	// +optional
	Error string `json:"error,omitempty"`
}

// HarnessStatus is what became of the primary container.
type HarnessStatus struct {
	// +required
	RestartCount int32 `json:"restartCount"`
	// +optional
	LastTerminated *Termination `json:"lastTerminated,omitempty"`
}

// A Termination is how a container ended.
type Termination struct {
	// +optional
	Reason string `json:"reason,omitempty"`
	// +required
	ExitCode int32 `json:"exitCode"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// A WaitingContainer is a container that does not run, in the kubelet's words.
type WaitingContainer struct {
	// +required
	Container string `json:"container"`
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
}
