package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Repo is a git repository that the Repo cache keeps on each Sandbox node. Its name is the cache key, derived from the
// repository's identity. The Orchestrator makes Repos; a converge never does.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=repos,singular=repo
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Repo struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RepoSpec `json:"spec"`
	// +optional
	Status RepoStatus `json:"status,omitempty"`
}

// RepoList is a list of Repos.
//
// +kubebuilder:object:root=true
type RepoList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Repo `json:"items"`
}

// RepoSpec says what to fetch, how and how often.
type RepoSpec struct {
	// URL is any that git accepts.
	// +required
	// +kubebuilder:validation:MinLength=1
	URL string `json:"url"`
	// SecretRef is the credential, with Flux's keys; absent means an anonymous clone.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// RefreshInterval is how often the cache fetches, such as "5m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:default="5m"
	RefreshInterval *metav1.Duration `json:"refreshInterval,omitempty"`
}

// ConditionSynced is True when all nodes have the repository, False with the first error, Unknown when no node has reported.
const ConditionSynced = "Synced"

// RepoStatus is what the nodes report.
type RepoStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=node
	Nodes []RepoNode `json:"nodes,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RepoAttempt is what a node tried last.
//
// +kubebuilder:validation:Enum=Probe;Clone;Fetch
type RepoAttempt string

const (
	AttemptProbe RepoAttempt = "Probe"
	AttemptClone RepoAttempt = "Clone"
	AttemptFetch RepoAttempt = "Fetch"
)

// RepoNode is a repository on one node.
type RepoNode struct {
	// +required
	Node string `json:"node"`
	// Present says that the node has a usable copy.
	// +required
	Present bool `json:"present"`
	// Synced says that the last attempt worked.
	// +required
	Synced bool `json:"synced"`
	// +required
	Attempted RepoAttempt `json:"attempted"`
	// +optional
	LastAttempt *metav1.Time `json:"lastAttempt,omitempty"`
	// +optional
	LastFetched *metav1.Time `json:"lastFetched,omitempty"`
	// +optional
	LastError string `json:"lastError,omitempty"`
	// ObservedGeneration is that of the Repo at the attempt.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
