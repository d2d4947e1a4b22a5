package config

import corev1 "k8s.io/api/core/v1"

// An Instance is what a converge brings into a cluster: the configuration of jr2.config.ts and what the registered Workflows
// say. Load makes one from a folder; a Go program may fill one in itself and call Validate. A nil pointer or slice means "not
// said", which differs from empty wherever a field's comment says so.
type Instance struct {
	// Name is the identity of the Instance: its namespace, its owner label and the names of its images. Load takes the base name
	// of the folder when the configuration gives none.
	Name string `json:"name"`
	// Root is the absolute path of the Instance folder; empty for an Instance that has none.
	Root string `json:"root,omitempty"`
	// File is the absolute path of jr2.config.ts; empty when there is none.
	File string `json:"file,omitempty"`
	// KitVersion is the version of @jr2/orchestrator that the Instance resolves, without a leading "v". It chooses the Kit images. A
	// converge takes DefaultKitVersion where a Go value leaves it empty.
	KitVersion string `json:"kitVersion"`

	Git Git `json:"git"`
	// Registry is the prefix under which images that a converge builds are pushed, a prefix of image references without scheme, tag
	// and user; nil means none. Empty is present and says nothing: a converge takes it for no registry.
	Registry *string `json:"registry,omitempty"`
	// KitRegistry is the prefix from which Kit images are pulled; nil and empty mean their published home.
	KitRegistry *string `json:"kitRegistry,omitempty"`
	// Platforms replaces the set read from the nodes; nil means "read the nodes", an empty list is an error of the converge.
	Platforms       []string        `json:"platforms"`
	Sandbox         Sandbox         `json:"sandbox"`
	PriorityClasses PriorityClasses `json:"priorityClasses"`
	Secrets         []HeldSecret    `json:"secrets,omitempty"`
	Harness         Harness         `json:"harness"`
	Operator        Operator        `json:"operator"`

	// Workflows are the registered Workflows in name order.
	Workflows []Workflow `json:"workflows,omitempty"`
	// Modules is what the Orchestrator evaluates: one bundled ES module per Workflow and one for the configuration ("jr2.config").
	// Empty for an Instance given as a Go value; the converge then publishes an Assembly without modules.
	Modules []Module `json:"-"`
	// DefaultImage is the absolute path of images/default when that folder holds a Dockerfile; empty when there is no such folder.
	DefaultImage string `json:"defaultImage,omitempty"`
	// Notes are warnings found while loading, each one line: they never stop a converge.
	Notes []string `json:"notes,omitempty"`

	// unread are the fields that Load refused and left out, by their paths. What a rule says of them would be an echo.
	unread []string

	// outside says that the caller admits files that lie outside of the folder; see LoadOptions.OutsideImages.
	outside bool
}

// Module is one bundled module of the Instance.
type Module struct {
	// Name is the Workflow's name, or "jr2.config".
	Name string
	// Source is a self-contained ES module; @jr2/*, xstate and zod stay imports, because the Orchestrator brings them.
	Source []byte
}

// Git holds the credentials for the repositories of Workspaces.
type Git struct {
	Credentials []GitCredential `json:"credentials,omitempty"`
}

// GitCredential admits the repositories whose identity starts with Match ("*" for all).
type GitCredential struct {
	Match string `json:"match"`
	// Token is the name of an environment variable that holds an https token.
	Token string `json:"token,omitempty"`
	// SSHKey is the name of a Secret that holds a deploy key.
	SSHKey string `json:"sshKey,omitempty"`
}

// Sandbox says where Sandboxes run and how large they are by default. Both placement fields have the shapes of the pod spec.
type Sandbox struct {
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	// Resources is the Size of a Workspace that states none, per field.
	Resources Limits `json:"resources"`
}

// PriorityClasses names classes that exist in the cluster; nil means that the converge creates its own.
type PriorityClasses struct {
	Control *string `json:"control,omitempty"`
	Sandbox *string `json:"sandbox,omitempty"`
}

// HeldSecret is a credential that the Custodian holds and the Harness never sees.
type HeldSecret struct {
	// Name is the environment variable in which the Harness sees a stand-in.
	Name string `json:"name"`
	// Value and ValueFrom exclude each other; both may be absent where the file is read without the shell.
	Value     Secret        `json:"value"`
	ValueFrom *SecretKeyRef `json:"valueFrom,omitempty"`
	Hosts     []string      `json:"hosts,omitempty"`
	Headers   []string      `json:"headers,omitempty"`
	Paths     []string      `json:"paths,omitempty"`
}

// SecretKeyRef names a key of a Secret in the namespace of the Instance.
type SecretKeyRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Harness is what the agent runtime can reach.
type Harness struct {
	Provider *Provider              `json:"provider,omitempty"`
	Catalog  map[string]Catalog     `json:"catalog,omitempty"`
	Env      []HarnessEnv           `json:"env,omitempty"`
	EnvFrom  []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// CABundle is the path of a PEM file, relative to the Instance folder.
	CABundle string `json:"caBundle,omitempty"`
}

// HarnessEnv is an environment variable of the Harness container: a literal, which travels in a Secret, or a source.
type HarnessEnv struct {
	Name      string               `json:"name"`
	Value     Secret               `json:"value"`
	ValueFrom *corev1.EnvVarSource `json:"valueFrom,omitempty"`
}

// Provider is one custom, OpenAI-compatible model provider.
type Provider struct {
	ID            string                 `json:"id"`
	API           string                 `json:"api"`
	BaseURL       string                 `json:"baseUrl"`
	APIKey        Secret                 `json:"apiKey"`
	ContextWindow int64                  `json:"contextWindow,omitempty"`
	MaxTokens     int64                  `json:"maxTokens,omitempty"`
	Models        map[string]ModelLimits `json:"models,omitempty"`
}

// ModelLimits are token limits of one model.
type ModelLimits struct {
	ContextWindow int64 `json:"contextWindow,omitempty"`
	MaxTokens     int64 `json:"maxTokens,omitempty"`
}

// Catalog replaces the base URL of a provider of the catalog.
type Catalog struct {
	BaseURL string `json:"baseUrl"`
}

// Operator says whether a converge manages the operator; nil means yes.
type Operator struct {
	Manage *bool `json:"manage,omitempty"`
}
