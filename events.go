package jr2

import (
	"io"

	"jr2.dev/jr2/internal/event"
	"jr2.dev/jr2/internal/narrate"
	"jr2.dev/jr2/internal/terminal"
)

// Event is something that a converge did or saw: one of the types below. Events arrive one at a time, in the order of the converge.
type Event = event.Event

// What a converge sees.
type (
	// EnvApplied says which names .env added to the environment.
	EnvApplied = event.EnvApplied
	// Started opens a converge.
	Started = event.Started
	// PlanStarted opens a plan.
	PlanStarted = event.PlanStarted
	// TypecheckStarted says that the Instance's own compiler runs.
	TypecheckStarted = event.TypecheckStarted
	// TypecheckSkipped says why no compiler ran.
	TypecheckSkipped = event.TypecheckSkipped
	// Noted is a warning that stops nothing.
	Noted = event.Noted
	// Walked says what the registered Workflows carry.
	Walked = event.Walked
	// KubernetesFound is the version of the API server and the floor that it meets.
	KubernetesFound = event.KubernetesFound
	// PlatformsResolved is the set of platforms that images are built for.
	PlatformsResolved = event.PlatformsResolved
	// SandboxNodes says where a Sandbox can run now, and why not elsewhere.
	SandboxNodes = event.SandboxNodes
	// ExcludedNode is a node on which no Sandbox can run now.
	ExcludedNode = event.ExcludedNode
	// SizeTooLarge says that no Sandbox node has the allocatable for a Size.
	SizeTooLarge = event.SizeTooLarge
	// KitResolved says which Kit images run and where they are pulled from.
	KitResolved = event.KitResolved
	// PriorityClassesNamed lists the classes that the configuration names.
	PriorityClassesNamed = event.PriorityClassesNamed
)

// What a converge does.
type (
	// NamespaceApplied says that the Instance has its namespace.
	NamespaceApplied = event.NamespaceApplied
	// LockWaiting says that another converge of the Instance runs.
	LockWaiting = event.LockWaiting
	// ImagesNotNeeded says that no Sandbox Image is built, and why.
	ImagesNotNeeded = event.ImagesNotNeeded
	// ImageFresh says that the cluster's record holds an image as delivered.
	ImageFresh = event.ImageFresh
	// ImageBuilding says that a build starts.
	ImageBuilding = event.ImageBuilding
	// BuildProgress is one line of what the builder does.
	BuildProgress = event.BuildProgress
	// ImageUser is the USER that an image declares.
	ImageUser = event.ImageUser
	// ImagePushed says that the registry holds an image.
	ImagePushed = event.ImagePushed
	// ImageLoaded says that every node of a kind cluster holds an image.
	ImageLoaded = event.ImageLoaded
	// Applied says what applying a layer changed.
	Applied = event.Applied
	// ApplyWaiting says what an apply waits for or tries again.
	ApplyWaiting = event.ApplyWaiting
	// Change is one object that an apply changed.
	Change = event.Change
	// SecretHeld says that a secret is held, for which hosts, and where its value lies.
	SecretHeld = event.SecretHeld
	// CertificateMade says that a certificate of held secrets was made.
	CertificateMade = event.CertificateMade
	// DeployKeyNeeded says that the Secret of a deploy key is missing and a source is asked for.
	DeployKeyNeeded = event.DeployKeyNeeded
	// DeployKeyMade says that a deploy key is in its Secret.
	DeployKeyMade = event.DeployKeyMade
	// DeployKeyReminder says, last of all, where a public key has to be added.
	DeployKeyReminder = event.DeployKeyReminder
	// ModelsSkipped says why no model is asked.
	ModelsSkipped = event.ModelsSkipped
	// ModelAsked says that a model is asked by a pod.
	ModelAsked = event.ModelAsked
	// ModelAnswered says how a model answered.
	ModelAnswered = event.ModelAnswered
	// OperatorLeftAlone says that the cluster runs a newer operator.
	OperatorLeftAlone = event.OperatorLeftAlone
	// OperatorNotManaged says that operator.manage is false.
	OperatorNotManaged = event.OperatorNotManaged
	// RolloutWaiting says what a rollout still waits for.
	RolloutWaiting = event.RolloutWaiting
	// Verified says how many pods of a layer run the image that was asked for.
	Verified = event.Verified
	// AssemblyPublishing says that an Assembly is being published.
	AssemblyPublishing = event.AssemblyPublishing
	// AssemblyCurrent says that an Assembly was seen to be the current one.
	AssemblyCurrent = event.AssemblyCurrent
	// WorkspacesOnOlderImages counts live Sandboxes that keep an older image.
	WorkspacesOnOlderImages = event.WorkspacesOnOlderImages
	// ReposBound counts the repositories that the Workflows bind.
	ReposBound = event.ReposBound
	// Converged closes a converge that succeeded.
	Converged = event.Converged
)

// EventVersion is the version of the JSON form of events.
const EventVersion = event.Version

// MarshalEvent writes an event as one JSON object whose field "type" tells which it is.
func MarshalEvent(e Event) ([]byte, error) { return event.Marshal(e) }

// Narrate returns a receiver of events that writes them to w as the lines of the command line tool.
func Narrate(w io.Writer) func(Event) { return narrate.To(w) }

// Terminal returns a writer that makes everything safe to show on its way to w, text and JSON: a character that a terminal acts upon, that hides or
// that turns the text around is spelled \u001b. What Narrate and NarrateError give is safe already.
func Terminal(w io.Writer) io.Writer { return terminal.Writer(w) }

// NarrateError returns the text that ends a converge which failed: a refusal as it stands, every other error with its prefix.
func NarrateError(err error) string { return narrate.Error(err) }
