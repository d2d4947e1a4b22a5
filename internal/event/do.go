package event

import "time"

// NamespaceApplied says that the Instance has its namespace.
type NamespaceApplied struct {
	Name string `json:"name"`
	// Action is "created", "configured" or "unchanged".
	Action string `json:"action"`
	// Asked says that somebody agreed to it in a first contact, whose question told it already.
	Asked bool `json:"asked,omitempty"`
}

// LockWaiting says that another converge of the Instance runs, and who holds it.
type LockWaiting struct {
	Holder string    `json:"holder"`
	Since  time.Time `json:"since"`
	// Fix is the command that takes the lock away from a holder of whom nobody knows: the cluster has only its word.
	Fix string `json:"fix,omitempty"`
}

// ImagesNotNeeded says that no Sandbox Image is built, and why.
type ImagesNotNeeded struct {
	Reason string `json:"reason"`
}

// ImageFresh says that an image is there already and was not built.
type ImageFresh struct {
	Name string `json:"name"`
	Ref  string `json:"ref"`
	// Source is "record" when the cluster's record names it, "registry" when the registry held it, "nodes" when every node of a kind
	// cluster did.
	Source string `json:"source"`
}

// ImageBuilding says that a build starts.
type ImageBuilding struct {
	Name string `json:"name"`
	Ref  string `json:"ref"`
}

// BuildProgress is one line of what the builder does: a step that started, ended or was cached, or what it prints.
type BuildProgress struct {
	Ref  string `json:"ref"`
	Step string `json:"step,omitempty"`
	// Status is "started", "done", "cached", "failed", "log" or "warning"; "loading" when the image goes to the node of a kind cluster
	// that Line names; or "builder", once and without Ref, when Line says which builder builds and why that one.
	Status string `json:"status"`
	Line   string `json:"line,omitempty"`
}

// ImageUser is the USER that an image declares; empty when it declares none.
type ImageUser struct {
	Name string `json:"name"`
	User string `json:"user"`
}

// ImagePushed says that the registry holds the image.
type ImagePushed struct {
	Name      string   `json:"name"`
	Registry  string   `json:"registry"`
	Digest    string   `json:"digest"`
	Platforms []string `json:"platforms"`
}

// ImageLoaded says that every node of a kind cluster holds the image.
type ImageLoaded struct {
	Name      string   `json:"name"`
	Cluster   string   `json:"cluster"`
	Digest    string   `json:"digest"`
	Platforms []string `json:"platforms"`
}

// Applied says what applying a layer changed.
type Applied struct {
	Layer     string `json:"layer"`
	Unchanged int    `json:"unchanged"`
	// Changes are the objects that were created, configured or pruned.
	Changes []Change `json:"changes,omitempty"`
}

// Change is one object that an apply changed.
type Change struct {
	Action string `json:"action"`
	Object string `json:"object"`
	Why    string `json:"why,omitempty"`
}

// ApplyWaiting says what an apply waits for or tries again.
type ApplyWaiting struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// SecretHeld says that a secret is held: its name, the hosts ("host:port") that its value may go to, and in words where the value lies. The
// value is no part of it.
type SecretHeld struct {
	Name   string   `json:"name"`
	Hosts  []string `json:"hosts"`
	Source string   `json:"source"`
}

// CertificateMade says that a certificate of held secrets was made: that of a host ("host:port"), or with an empty Host the Instance's authority.
type CertificateMade struct {
	Host string `json:"host,omitempty"`
	Why  string `json:"why"`
}

// ModelsSkipped says why no model is asked.
type ModelsSkipped struct {
	Reason string `json:"reason"`
}

// ModelAsked says that a model which an Agent names is asked by a pod of the cluster.
type ModelAsked struct {
	Model   string `json:"model"`
	BaseURL string `json:"baseUrl"`
}

// ModelAnswered says how that ended; the finding of the code tells it whole.
type ModelAnswered struct {
	Model string `json:"model"`
	// Code is empty for an answer that an Agent can work with.
	Code string `json:"code,omitempty"`
}

// OperatorLeftAlone says that the cluster runs a newer operator than the Instance's Kit.
type OperatorLeftAlone struct {
	Deployed string `json:"deployed"`
	Kit      string `json:"kit"`
}

// OperatorNotManaged says that operator.manage is false.
type OperatorNotManaged struct{}

// RolloutWaiting says what a rollout still waits for.
type RolloutWaiting struct {
	Layer   string `json:"layer"`
	Message string `json:"message"`
}

// Verified says how many live pods of a layer run the image that was asked for. With no pod nothing is verified.
type Verified struct {
	Layer    string `json:"layer"`
	Selector string `json:"selector"`
	Pods     int    `json:"pods"`
	Image    string `json:"image"`
}

// AssemblyPublishing says that an Assembly is being published; Previous is the current one, empty when there is none.
type AssemblyPublishing struct {
	Hash     string `json:"hash"`
	Previous string `json:"previous,omitempty"`
}

// AssemblyCurrent says that the cluster was seen to hold this Assembly as the current one.
type AssemblyCurrent struct {
	Hash      string   `json:"hash"`
	Workflows []string `json:"workflows"`
}

// WorkspacesOnOlderImages counts live Sandboxes whose image is not one of this converge; they keep it.
type WorkspacesOnOlderImages struct {
	Image string `json:"image"`
	Count int    `json:"count"`
}

// ReposBound counts the repositories that the Workflows bind; the Repo cache clones them.
type ReposBound struct {
	Count int `json:"count"`
}

// Converged closes a converge that succeeded.
type Converged struct {
	// Changed counts what this converge changed: objects, images, the Assembly.
	Changed int `json:"changed"`
}

func (NamespaceApplied) Type() string        { return "namespaceApplied" }
func (LockWaiting) Type() string             { return "lockWaiting" }
func (ImagesNotNeeded) Type() string         { return "imagesNotNeeded" }
func (ImageFresh) Type() string              { return "imageFresh" }
func (ImageBuilding) Type() string           { return "imageBuilding" }
func (BuildProgress) Type() string           { return "buildProgress" }
func (ImageUser) Type() string               { return "imageUser" }
func (ImagePushed) Type() string             { return "imagePushed" }
func (ImageLoaded) Type() string             { return "imageLoaded" }
func (Applied) Type() string                 { return "applied" }
func (ApplyWaiting) Type() string            { return "applyWaiting" }
func (SecretHeld) Type() string              { return "secretHeld" }
func (CertificateMade) Type() string         { return "certificateMade" }
func (ModelsSkipped) Type() string           { return "modelsSkipped" }
func (ModelAsked) Type() string              { return "modelAsked" }
func (ModelAnswered) Type() string           { return "modelAnswered" }
func (OperatorLeftAlone) Type() string       { return "operatorLeftAlone" }
func (OperatorNotManaged) Type() string      { return "operatorNotManaged" }
func (RolloutWaiting) Type() string          { return "rolloutWaiting" }
func (Verified) Type() string                { return "verified" }
func (AssemblyPublishing) Type() string      { return "assemblyPublishing" }
func (AssemblyCurrent) Type() string         { return "assemblyCurrent" }
func (WorkspacesOnOlderImages) Type() string { return "workspacesOnOlderImages" }
func (ReposBound) Type() string              { return "reposBound" }
func (Converged) Type() string               { return "converged" }
