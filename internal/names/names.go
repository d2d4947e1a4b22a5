// Package names holds what things are called in a cluster: labels, annotations, objects, keys, containers, ports, and how long their
// rollouts may take. Each is written once, here, and decides nothing.
package names

import "time"

// Keys of labels and annotations. Values are in the comments.
const (
	LabelInstance  = "jr2.dev/instance"             // the Instance's name: on the Namespace and on every object in it
	LabelManagedBy = "app.kubernetes.io/managed-by" // ManagedBy
	LabelVersion   = "jr2.dev/version"              // the Kit version: on each of the four workloads
	LabelApp       = "app"                          // the name of the workload: selects its pods
	LabelSandbox   = "sandbox.jr2.dev/name"         // the Sandbox's name: set by the operator on every Sandbox pod
	LabelName      = "app.kubernetes.io/name"       // OperatorName: on the objects of the operator
	LabelOperator  = "control-plane"                // OperatorControlPlane: selects the operator's pods
	LabelAssembly  = "jr2.dev/assembly"             // the hash of the Assembly: on every chunk of it
	LabelToken     = "jr2.dev/sandbox"              // the Sandbox's name: on the Secret that holds its token
	LabelBound     = "jr2.dev/bound"                // "true": on a Repo that a Workflow binds in code

	// AnnotationImages holds the image map on the Orchestrator's Deployment: on its own metadata, because the same text on the
	// pod template would roll the Orchestrator each time a ref moves; an annotation, because a label ends at 63 characters.
	AnnotationImages = "jr2.dev/images"
	// AnnotationReplaced beside it is a JSON list of the refs that the map named before and names no more. They are kept from a sweep: what
	// reads the map has it from a mounted ConfigMap, and so sees the new one late.
	AnnotationReplaced = "jr2.dev/replaced-images"
	// AnnotationHeldDigest, on the pod template of the Instance Harness, moves when anything moves that its containers read once.
	AnnotationHeldDigest = "jr2.dev/held-digest"
	// AnnotationEnvDigest does the same on the pod template of the Orchestrator, for the keys of jr2-instance.
	AnnotationEnvDigest = "jr2.dev/env-digest"
	// These two keep autoscalers from moving a pod that holds a conversation.
	AnnotationSafeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict" // "false"
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"                    // "true"

	// AnnotationIdentity, on a Repo, is the repository's identity, AnnotationLastAttached when a Sandbox last asked for it (RFC 3339).
	AnnotationIdentity     = "jr2.dev/identity"
	AnnotationLastAttached = "jr2.dev/last-attached"

	// AnnotationMadeBy, on a Namespace, is the name of the Instance whose converge made it. It says so only while the server notes that jr2 set it:
	// whoever copies a manifest copies its annotations.
	AnnotationMadeBy = "jr2.dev/namespace-made-by"

	// AnnotationTouched, on a chunk of an Assembly, is when a publisher last relied on it (RFC 3339).
	AnnotationTouched = "jr2.dev/touched"

	ManagedBy            = "jr2"
	OperatorName         = "operator"
	OperatorControlPlane = "controller-manager"
)

// Names of objects.
const (
	OperatorNamespace  = "jr2-system"
	OperatorDeployment = "jr2-controller-manager"
	OperatorAccount    = "jr2-controller-manager"
	ManagerRole        = "jr2-manager-role"
	ManagerBinding     = "jr2-manager-rolebinding"
	ElectionRole       = "jr2-leader-election-role"
	ElectionBinding    = "jr2-leader-election-rolebinding"

	PriorityControl = "jr2-control"
	PrioritySandbox = "jr2-sandbox"

	Orchestrator   = "jr2-orchestrator" // Deployment, Service, ServiceAccount, Role, RoleBinding
	StateClaim     = "jr2-state"
	InstanceSecret = "jr2-instance"

	HarnessEnvSecret = "jr2-harness-env"
	HarnessConfig    = "jr2-harness"
	TokenSuffix      = "-token" // what the Secret of a Sandbox's token has after the Sandbox's name
	ImagesConfig     = "jr2-images"
	HeldConfig       = "jr2-held"
	HeldSecrets      = "jr2-held-secrets"
	HeldTLS          = "jr2-held-tls"
	HeldCA           = "jr2-held-ca"
	TrustConfig      = "jr2-ca"

	SandboxIngress = "jr2-sandbox-ingress"
	HarnessIngress = "jr2-instance-harness-ingress"

	RepoCacheName = "jr2-repo-cache" // DaemonSet, ServiceAccount, Role, RoleBinding

	InstanceHarnessName  = "jr2-instance-harness" // StatefulSet, Service
	InstanceHarnessPods  = "jr2-instance-harness-pods"
	InstanceHarnessClaim = "conversations-jr2-instance-harness-0"

	// AssemblyPointer is the ConfigMap that names the current Assembly; docs/assembly.md describes it.
	AssemblyPointer = "jr2-assembly"
)

// Keys inside ConfigMaps and Secrets, and names of environment variables that the Kit images read.
const (
	ImagesKey    = "images.json"
	HarnessKey   = "harness.json"
	HeldKey      = "held.json"
	BootstrapKey = "envoy.json"
	ScriptKey    = "custodian.lua"
	CAKey        = "ca.crt"
	CAPrivateKey = "ca.key" // in jr2-held-ca, beside ca.crt
	ExtraKey     = "extra.crt"
	BundleKey    = "bundle.crt"
	UpstreamKey  = "upstream.crt"

	// Those of a deploy key are Flux's. A third, known_hosts, is the user's to add.
	DeployKeyPrivate = "identity"
	DeployKeyPublic  = "identity.pub"

	KeyInstanceToken = "JR2_INSTANCE_TOKEN"
	KeySigningKey    = "JR2_SIGNING_KEY"
	KeyHarnessToken  = "JR2_INSTANCE_HARNESS_TOKEN"

	// SandboxTokenName is the name under which a Custodian holds the token of its pod.
	SandboxTokenName = "JR2_SANDBOX_TOKEN"
)

// Names of containers, as the verification looks for them.
const (
	ManagerContainer      = "manager"
	OrchestratorContainer = "orchestrator"
	RepoCacheContainer    = "agent"
	HarnessContainer      = "harness"
	CustodianContainer    = "custodian"
	UserContainer         = "user"
	PreflightContainer    = "preflight" // an init container of Sandboxes
)

// Ports.
const (
	OperatorHealthPort   = 8081
	OrchestratorPort     = 4000
	HarnessPort          = 8080
	CustodianControlPort = 8081 // on 127.0.0.1
	CustodianEgressPort  = 15001
	CustodianHealthPort  = 15021
)

// How long a rollout may take. The Instance Harness first drains the turns that run.
const (
	RolloutTimeout = 180 * time.Second
	HarnessDrain   = 600 * time.Second
	HarnessTimeout = HarnessDrain + RolloutTimeout
)
