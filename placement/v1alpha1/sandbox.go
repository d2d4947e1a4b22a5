package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Sandbox is one pod for one Workspace. It has one Pod in its life: when that is gone the Sandbox is Lost and stays Lost.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sandboxes,singular=sandbox
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Sandbox struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SandboxSpec `json:"spec"`
	// +optional
	Status SandboxStatus `json:"status,omitempty"`
}

// SandboxList is a list of Sandboxes.
//
// +kubebuilder:object:root=true
type SandboxList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Sandbox `json:"items"`
}

// SandboxSpec is what the pod of a Sandbox is made of. The primary container is the Harness.
type SandboxSpec struct {
	// Image of the primary container.
	// +required
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// Command and Args override those of the primary container's image.
	// +optional
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`
	// Port is where the primary container listens; it is in status.endpoint.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=8080
	Port int32 `json:"port,omitempty"`
	// SecurityContext is the primary container's, verbatim; unset means the operator's hardened default.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
	// ReadinessProbe of the primary container; unset means a TCP probe on the port, each second.
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`
	// Sidecars run beside the primary container, verbatim. One without a securityContext gets the hardened default, except the
	// one named "user".
	// +optional
	// +listType=map
	// +listMapKey=name
	Sidecars []corev1.Container `json:"sidecars,omitempty"`
	// InitContainers run before, fully verbatim.
	// +optional
	// +listType=map
	// +listMapKey=name
	InitContainers []corev1.Container `json:"initContainers,omitempty"`
	// FSGroup is the pod's.
	// +optional
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// Volumes of the pod.
	// +optional
	// +listType=map
	// +listMapKey=name
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts of the primary container.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// Resources of the primary container: its share of the Size.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// PodResources is the pod-level resources: the whole Size.
	// +optional
	PodResources *corev1.ResourceRequirements `json:"podResources,omitempty"`
	// SHMSize is the limit of a memory-backed /dev/shm of the primary container; unset means none is mounted.
	// +optional
	SHMSize *resource.Quantity `json:"shmSize,omitempty"`
	// PriorityClassName of the pod, verbatim.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Env and EnvFrom of the primary container.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`
	// +optional
	// +listType=atomic
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// IdleTimeout is how long the Sandbox lives without a sign of use, such as "30m"; unset means for ever.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	IdleTimeout *metav1.Duration `json:"idleTimeout,omitempty"`
	// NodeSelector and Tolerations of the pod, verbatim.
	// +optional
	// +mapType=atomic
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Repos are the repositories that must be on the node before the Sandbox is Ready; the first that is not says why it waits.
	// +optional
	// +listType=map
	// +listMapKey=key
	Repos []SandboxRepo `json:"repos,omitempty"`
}

// SandboxRepo is a repository that a Sandbox mounts.
type SandboxRepo struct {
	// Key is the name of the Repo object and of the repository's place in the node's cache.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Key string `json:"key"`
	// URL is what the key stands for.
	// +required
	// +kubebuilder:validation:MinLength=1
	URL string `json:"url"`
}

// SandboxPhase is where a Sandbox stands.
//
// +kubebuilder:validation:Enum=Pending;Ready;Lost;Terminating
type SandboxPhase string

const (
	SandboxPending SandboxPhase = "Pending"
	SandboxReady   SandboxPhase = "Ready"
	// SandboxLost is the end: the pod is gone or has ended, and no second one is made.
	SandboxLost        SandboxPhase = "Lost"
	SandboxTerminating SandboxPhase = "Terminating"
)

// Types of a Sandbox's conditions.
const (
	ConditionScheduled  = "Scheduled"
	ConditionReady      = "Ready"
	ConditionReposFresh = "ReposFresh"
	ConditionLost       = "Lost"
)

// Reasons of a Sandbox's conditions. Where the scheduler or the pod gives a reason of its own, that stands in the condition.
const (
	ReasonSchedulingPending = "SchedulingPending" // Scheduled Unknown: the scheduler has not spoken
	ReasonUnschedulable     = "Unschedulable"     // Scheduled, Ready False; the message is the scheduler's own words
	ReasonScheduled         = "Scheduled"         // Scheduled True
	ReasonQuotaExceeded     = "QuotaExceeded"     // Scheduled, Ready False; the message is the API server's own words
	ReasonPodNotReady       = "PodNotReady"       // Ready False
	ReasonPodReady          = "PodReady"          // Ready True
	ReasonRepoMissing       = "RepoMissing"       // Ready False: no Repo object
	ReasonRepoPending       = "RepoPending"       // Ready False: not on the node yet
	ReasonRepoCloneFailed   = "RepoCloneFailed"   // Ready False
	ReasonFetched           = "Fetched"           // ReposFresh True
	ReasonFetchFailed       = "FetchFailed"       // ReposFresh False
	ReasonPodDeleted        = "PodDeleted"        // Lost True, as the next three
	ReasonNodeLost          = "NodeLost"
	ReasonPodFailed         = "PodFailed"
	ReasonPodSucceeded      = "PodSucceeded"
)

// Further reasons of Scheduled and Ready False: why there is no pod, though no quota is in the way. The message is the API server's own
// words where it spoke. All of them are tried again, and at once when the spec changes.
const (
	ReasonPodRefused = "PodRefused" // admission, rights or a webhook refuse the pod or its Service
	ReasonPodInvalid = "PodInvalid" // the API server takes no such pod or Service: the spec is wrong
	ReasonNameTaken  = "NameTaken"  // a pod or a Service that is not the Sandbox's has its name
	ReasonNotAllowed = "NotAllowed" // the spec asks for what no Sandbox, or none of this Instance, may have; the message names the fields
)
