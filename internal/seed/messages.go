// Package seed holds the sentences that the project's source document fixes byte for byte: the lines of a converge, its
// warnings, its refusals and its errors.
//
// It decides wording and nothing else: no logic, no imports. Packages build their error texts from these constants and
// internal/narrate builds its lines from them, so that each sentence has one home. messages_test.go fills every constant with the
// document's own examples and looks the result up in the document (testdata/shared-cluster.txt).
//
// Error texts stand here without their "error: " prefix: that prefix belongs to the one who prints.
package seed

// Lines of a converge, in the order in which they are printed. A line that starts with two spaces belongs to the one above it.
const (
	EnvLine             = "→ .env: %s"                                                                                                                   // names, joined with ", "
	Header              = "jr2 up — instance \"%s\" → context %s / namespace %s"                                                                         // instance, context, namespace
	TypecheckLine       = "typecheck: tsc --noEmit (the instance's own compiler)"                                                                        //
	KubernetesLine      = "kubernetes: %s (floor %s, ADR-0037)"                                                                                          // version as served, floor
	FirstContactAsk     = "first contact: deploy instance \"%s\" to context %s (%s)? [y/N] "                                                             // instance, context, what
	FirstContactNoTTY   = "first contact: deploy instance \"%s\" to context %s (%s)? — not a tty; pass --yes to proceed non-interactively"               // instance, context, what
	CreateNamespace     = "create namespace \"%s\""                                                                                                      // the <what> of a first contact
	PlatformsLine       = "platforms: %s (from %d schedulable node(s))"                                                                                  // platforms, nodes
	SkippingArch        = "  skipping node arch %s — the kit publishes no Kit image for it, so no pod there could run"                                   // architecture
	SandboxNodesLine    = "sandbox nodes: %s"                                                                                                            // node names
	ImagesInstalledKit  = "images: installed kit — the published v%s Harness, operator and Orchestrator, pulled from %s"                                 // version, registry prefix
	PriorityOwn         = "priority: the Instance's own — %s"                                                                                            // classes
	PriorityOwnControl  = "control \"%s\""                                                                                                               // class
	PriorityOwnSandbox  = "sandbox \"%s\""                                                                                                               // class
	SandboxImageBuild   = "sandbox image \"%s\": building %s"                                                                                            // name, ref
	NoUserDeclared      = "  no USER declared — the pod's uid-1000 fallback applies"                                                                     //
	PushLine            = "  push → %s"                                                                                                                  // registry
	AssemblyPublishing  = "assembly: publishing %s (%s)"                                                                                                 // hash, what is current
	AssemblyNoCurrent   = "no current Assembly"                                                                                                          //
	AssemblyCurrent     = "assembly: %s is current — workflows: %s"                                                                                      // hash, workflow names
	RepoCacheUnverified = "repo cache: WARNING — rollout succeeded but no pod matched app=jr2-repo-cache (nothing verified)"                             //
	UnverifiedForm      = "%s: WARNING — rollout succeeded but no pod matched %s (nothing verified)"                                                     // layer, selector
	Converged           = "converged — `jr2 run <workflow>` when ready"                                                                                  //
	RunPlacing          = "  → active \"placing\""                                                                                                       //
	PlacingWaits        = "  placing: waits for %s — %s"                                                                                                 // quota, message
	QuotaExample        = "pods \"%s\" is forbidden: exceeded quota: %s, requested: limits.memory=%s, used: limits.memory=%s, limited: limits.memory=%s" // the quota's own words
)

// Warnings of the Sandbox node survey.
const (
	NoSandboxNode     = "warning: no Sandbox node right now — a Sandbox stays Pending until one appears:"
	NodeReason        = "  %s: %s"                                              // node, reason
	LacksLabel        = "lacks the label %s that sandbox.nodeSelector requires" // label key
	NoSandboxNodeHint = "  a Sandbox lands where an ordinary pod lands; to admit a tainted or labeled node, set `sandbox: { nodeSelector, tolerations }` in jr2.config.ts (raw pod-spec shapes, ADR-0052)."
	SizeTooLarge      = "warning: no Sandbox node right now has the allocatable for a Size of memory %s, cpu %s (workflow %s) — its Sandbox stays Pending until one does" // memory, cpu, quoted workflow names
)

// ModelReach is what to know when an Agent's model can't be reached.
const ModelReach = "The pods must reach the model. A LAN address of your computer that works from kind can fail from a shared cluster. See Use a local model and Use a hosted provider or a gateway."

// Refusals: the cluster or the namespace cannot take the Instance. They are printed as they stand.
const (
	RefuseFloor     = "refusing: %s runs Kubernetes %s; jr2 needs Kubernetes %s or newer (every Sandbox mounts jr2's runtime as an image volume, ADR-0037). Nothing was applied."                                                                                               // context, version, floor
	RefusePodLevel  = "refusing: %s (Kubernetes %s) drops pod-level resources — the PodLevelResources feature gate is off, and a Workspace's Size cannot hold (ADR-0060). Enable the gate on the API server and kubelets. The namespace was created; nothing else was applied." // context, version
	RefuseNamespace = "refusing: namespace \"%s\" on %s belongs to another instance (\"%s\"). Give a different namespace with -n, or a different context."                                                                                                                      // namespace, context, owner
)

// Errors. The sentence after each "names" or "report" is the same: ReleasedPlatforms.
const (
	ReleasedPlatforms    = "the kit releases images for linux/amd64, linux/arm64 and nothing else, so an image built for anything else could not be joined by a Kit image in the same pod. Set `platforms` in jr2.config.ts (docker platform strings, e.g. \"linux/arm64\") to name the set to build for."
	PlatformsName        = "`platforms` names %s — " + ReleasedPlatforms                       // unsupported entries
	NodesReport          = "this cluster's schedulable nodes report %s — " + ReleasedPlatforms // architectures
	NoRegistry           = "context %s is not a kind cluster and no `registry` is configured — set `registry` in jr2.config.ts (from env) so the image can be pushed (ADR-0019)"
	CannotEmulate        = "this host cannot build for %s: a foreign architecture's RUN steps need qemu binfmt emulation, and none is registered (this builder targets %s). Install it, then re-run:" // missing, offered
	InstallEmulation     = "docker run --privileged --rm tonistiigi/binfmt --install %s"                                                                                                              // architectures, joined with ","
	SecretMissing        = "secrets[%d].valueFrom names Secret \"%s\", which does not exist in the instance's namespace — create it first: kubectl create secret generic %s --from-literal=%s=... (ADR-0019, ADR-0059)"
	EnvFromMissing       = "harness.envFrom references Secret \"%s\", which does not exist in namespace \"%s\" — create it first: kubectl -n %s create secret generic %s --from-literal=KEY=..."
	PriorityClassesShape = "%s at priorityClasses%s: %s — { control?, sandbox? }, each the name of an existing PriorityClass (ADR-0060)" // file, path, problem
)
